// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/sharding/single_device_sharding.h"

#include "artifex_devices/base/throw_error.h"

namespace artifex_devices {

SingleDeviceSharding::SingleDeviceSharding(DeviceListRef device, MemoryKind kind)
    : Sharding(std::move(device), TileGrid(), kind, Uneven::kError) {}

std::shared_ptr<const SingleDeviceSharding> SingleDeviceSharding::make(Device* device, MemoryKind kind) {
  if (device == nullptr) {
    throw_error("SingleDeviceSharding: no device was given; expected one; pass one of devices()");
  }
  return std::shared_ptr<const SingleDeviceSharding>(
      new SingleDeviceSharding(DeviceList::make({device}, "SingleDeviceSharding"), kind));
}

std::string SingleDeviceSharding::to_string() const {
  return fmt::format("SingleDeviceSharding(device={}, memory_kind={})", device()->repr(),
                     artifex_devices::to_string(memory_kind()));
}

size_t SingleDeviceSharding::hash() const noexcept {
  return hash_mix(devices()->hash(), static_cast<size_t>(memory_kind()));
}

bool SingleDeviceSharding::equals(const Sharding& other) const noexcept {
  const auto* single = dynamic_cast<const SingleDeviceSharding*>(&other);
  return single && *devices() == *single->devices() && memory_kind() == single->memory_kind();
}

ShardingRef SingleDeviceSharding::with_memory_kind(MemoryKind kind) const { return make(device(), kind); }

ShardDomains::Names SingleDeviceSharding::names(std::string_view operation) const { return {.operation = operation}; }

}  // namespace artifex_devices
