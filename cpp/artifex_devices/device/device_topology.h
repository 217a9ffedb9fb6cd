// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "artifex_devices/device/client.h"
#include "artifex_devices/topology/described_machine.h"

namespace artifex_devices {

/// Devices of a topology with consecutive ids and otherwise equal attributes.
struct TopologyDevices {
  int64_t first_id = 0;
  int64_t count = 0;
  std::string kind;
  int process_index = 0;
  int cpu_domain = 0;  // index into the machine's CPU domains
  int64_t memory_bytes = 0;
  std::vector<std::string> memory_kinds;
  friend bool operator==(const TopologyDevices&, const TopologyDevices&) = default;
};

/// A description of a client's devices and their machine, independent of the client: it can be serialized, read on
/// another machine, and used for planning there. Immutable; equal if the bytes are equal.
class DeviceTopology {
 public:
  /// Limits of created and deserialized topologies.
  static constexpr int64_t kMostDevices = int64_t{1} << 24;
  static constexpr int64_t kMostRuns = int64_t{1} << 18;
  static constexpr int64_t kMostNodes = 16384;     // NUMA nodes; CPU domains
  static constexpr int64_t kMostCpu = 1048575;     // number of a CPU
  static constexpr int64_t kMostCpus = 4194304;    // in all sets together
  static constexpr int64_t kMostKinds = 16;        // memory kinds of a device
  static constexpr int64_t kMostBytes = 16 << 20;  // of the serialized form

  /// Describes all devices of a client. `platform_version` is the platform's version; for a client created from a
  /// topology, it is the topology's version. Throws InvalidArgument beyond the limits.
  static DeviceTopology of(const Client& client, std::string platform_version);

  /// Reads the result of serialize(). Unknown fields of newer versions are skipped; another major version is rejected.
  /// Throws InvalidArgument for any other bytes, within time and memory bounded by the limits.
  static DeviceTopology deserialize(std::string_view bytes);
  /// An artifex_devices.DeviceTopology in the protobuf wire format (docs/formats/device_topology.proto). Equal
  /// topologies have equal bytes.
  const std::string& serialize() const noexcept { return bytes_; }

  const std::string& platform() const noexcept { return platform_; }
  const std::string& platform_version() const noexcept { return machine_->platform_version(); }
  const std::shared_ptr<const DescribedMachine>& machine() const noexcept { return machine_; }
  const std::vector<TopologyDevices>& devices() const noexcept { return devices_; }
  int64_t device_count() const noexcept { return devices_.back().first_id + devices_.back().count; }

  /// Creates a client with these devices for planning: placing on them throws Unavailable. Throws Unavailable for
  /// platforms and kinds that this library does not have, and for devices that it would place differently.
  ClientRef make_compile_only_client() const;

  /// Returns the 64-bit FNV-1a hash of the bytes, equal on all machines.
  uint64_t fingerprint() const noexcept;
  friend bool operator==(const DeviceTopology& a, const DeviceTopology& b) noexcept { return a.bytes_ == b.bytes_; }

 private:
  DeviceTopology() = default;
  /// Merges adjacent runs, checks that all numbers are consistent, and writes the bytes.
  static DeviceTopology make(std::string platform, MachineDescription machine, std::vector<TopologyDevices> devices,
                             std::string_view operation);
  std::string platform_;
  std::shared_ptr<const DescribedMachine> machine_;
  std::vector<TopologyDevices> devices_;
  std::string bytes_;
};

}  // namespace artifex_devices
