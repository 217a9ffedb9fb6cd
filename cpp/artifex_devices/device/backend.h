// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "artifex_devices/device/allocator_options.h"
#include "artifex_devices/device/memory_space.h"
#include "artifex_devices/topology/machine.h"

namespace artifex_devices {

class Cluster;
class CopyEngine;
class Device;
struct ClientOptions;

/// Names, number and memory of the devices of a client. It contains everything that differs between platforms; Client
/// and Device do not branch on the platform. Immutable and thread-safe.
///
/// A new platform is a folder next to this file, with a class that derives from Backend and, if needed, a MemorySpace.
class Backend {
 public:
  Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  virtual ~Backend() = default;

  virtual const std::string& platform() const noexcept = 0;  // "cpu", "gpu" or "tpu"
  /// Name of a device by its number in the process: "cpu", "NVIDIA H100 80GB HBM3".
  virtual const std::string& device_kind(int64_t local_device) const noexcept = 0;
  /// Whether the devices are emulated by the CPU.
  virtual bool is_emulated() const noexcept { return false; }
  /// Default number of devices of a client. Nothing: one for each CPU domain of the machine.
  virtual std::optional<int64_t> device_count() const noexcept { return std::nullopt; }
  virtual std::string repr(const Device& device) const = 0;  // "CpuDevice(id=0)"

  /// Whether each device has its own memory. Otherwise the devices near a NUMA node share its memory.
  virtual bool has_own_memory() const noexcept { return false; }
  /// Memory of the kind `device`: of a device by its number in the process, or of all near a NUMA node of this machine.
  virtual MemorySpace& device_space(int64_t local_device, int node, AllocatorKind allocator) const = 0;
  /// Memory of the kind `pinned_host`; null: the NUMA node's memory. The host kinds are host memory on every platform.
  virtual MemorySpace* pinned_space(int64_t) const { return nullptr; }
  /// Whether the host can read the memory of the kind `device`.
  virtual bool is_host_readable() const noexcept { return true; }
  /// Bytes of memory of a device. Nothing: an equal share of the memory near it.
  virtual std::optional<int64_t> memory_bytes(int64_t) const noexcept { return std::nullopt; }
  /// Engine for copies to and from the memory of the devices; null: the processor. Lives as long as the backend.
  virtual const CopyEngine* copy_engine() const noexcept { return nullptr; }

  /// Throws InvalidArgument for devices or options that the platform does not support; `count` is the number of all
  /// devices.
  virtual void check(const Machine& machine, int64_t count, const ClientOptions& options) const = 0;
  /// The simulated cluster that the devices belong to, or null.
  virtual const Cluster* cluster() const noexcept { return nullptr; }
};

using BackendRef = std::shared_ptr<const Backend>;

}  // namespace artifex_devices
