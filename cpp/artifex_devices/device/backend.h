// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "artifex_devices/device/memory_space.h"
#include "artifex_devices/topology/machine.h"

namespace artifex_devices {

class Cluster;
class Device;
struct ClientOptions;

/// What the devices of a client are: their names, their numbers and their memory. Everything that differs between
/// platforms is here; Client and Device do not branch on the platform. Immutable and thread-safe.
///
/// A new platform is a folder beside this file with a class that derives from Backend, and where needed a MemorySpace.
class Backend {
 public:
  Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  virtual ~Backend() = default;

  virtual const std::string& platform() const noexcept = 0;     // "cpu", "gpu" or "tpu"
  virtual const std::string& device_kind() const noexcept = 0;  // "cpu", "NVIDIA H100 80GB HBM3"
  /// Whether the devices are emulated by the CPU.
  virtual bool is_emulated() const noexcept { return false; }
  virtual std::string repr(const Device& device) const = 0;  // "CpuDevice(id=0)"

  /// Whether each device has memory of its own. Otherwise the devices near a NUMA node share its memory.
  virtual bool has_own_memory() const noexcept { return false; }
  /// Memory of the kind `device` near a NUMA node of this machine. The host kinds are host memory on every platform.
  virtual MemorySpace& device_space(int node, bool caching) const = 0;
  /// Whether the host can read the memory of the kind `device`.
  virtual bool is_host_readable() const noexcept { return true; }
  /// Bytes of memory of each device. Nothing: an equal share of the memory near it.
  virtual std::optional<int64_t> memory_bytes() const noexcept { return std::nullopt; }

  /// Throws InvalidArgument for devices or options that the platform does not have; `count` is the number of all
  /// devices.
  virtual void check(const Machine& machine, int64_t count, const ClientOptions& options) const = 0;
  /// The simulated cluster that the devices belong to, or null.
  virtual const Cluster* cluster() const noexcept { return nullptr; }
};

using BackendRef = std::shared_ptr<const Backend>;

}  // namespace artifex_devices
