// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "artifex_devices/device/client.h"

namespace artifex_devices {

/// One device's view of one kind of memory. Created at the first use of Device::memory, lives as long as its client;
/// identity is (device, kind). CPU devices on one NUMA node share the pages of one kind.
///
/// Bytes of arrays in the host kinds are counted here, by kind: the device's limit does not apply to them. Thread-safe.
class Memory {
 public:
  Memory(Device* device, MemoryKind kind) noexcept : device_(device), kind_(kind) {}
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  Device& device() const noexcept { return *device_; }
  MemoryKind kind() const noexcept { return kind_; }
  ProcessIndex process_index() const noexcept { return device_->process_index(); }
  const std::string& platform() const noexcept { return device_->platform(); }
  /// Unique in the client, three for each device: device 1 has 3, 4 and 5.
  int64_t id() const noexcept { return device_->id().number() * 3 + static_cast<int64_t>(kind_); }
  std::string to_string() const;  // "PinnedHostMemory(id=1, process_index=0, client=cpu)"
  std::string repr() const;       // "PINNED_HOST_1"

  /// Physical memory. Throws Unavailable for a device without memory, NotAddressable for a device of another process.
  MemorySpace& space() const;
  /// Logical bytes, including replicas; the limit of a host kind is the device's share of the machine's memory.
  DeviceMemoryStats stats() const noexcept;

  /// For host kinds; Device counts the kind `device`.
  void charge(int64_t bytes) noexcept;
  void discharge(int64_t bytes) noexcept { in_use_.fetch_sub(bytes, std::memory_order_relaxed); }
  void add_reserved(int64_t bytes) noexcept { reserved_.fetch_add(bytes, std::memory_order_relaxed); }

 private:
  Device* device_;
  MemoryKind kind_;
  std::atomic<int64_t> in_use_{0};
  std::atomic<int64_t> peak_{0};
  std::atomic<int64_t> reserved_{0};
  std::atomic<int64_t> largest_{0};
  std::atomic<int64_t> allocs_{0};
};

/// The three memories of one device.
struct Device::Memories {
  Memory device;
  Memory pinned;
  Memory unpinned;
};

/// "default" is the kind `device`, "pinned" is `pinned_host`; other names are kinds. Throws Unavailable naming the
/// device and its kinds.
MemoryKind memory_kind_of_device(const Device& device, std::string_view name);

/// Returns the kind called `name` on all `devices`: the default kind without a name, nothing without a name and
/// devices. Throws InvalidArgument naming the addressable kinds.
std::optional<MemoryKind> canonical_memory_kind(std::optional<std::string_view> name,
                                                const std::vector<Device*>& devices);

}  // namespace artifex_devices
