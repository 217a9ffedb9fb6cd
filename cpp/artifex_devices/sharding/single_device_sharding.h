// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "artifex_devices/sharding/sharding.h"

namespace artifex_devices {

/// Places the whole array on one device.
class SingleDeviceSharding final : public Sharding {
 public:
  static std::shared_ptr<const SingleDeviceSharding> make(Device* device, MemoryKind kind = MemoryKind::kDevice);

  Device* device() const noexcept { return devices()->front(); }

  std::string to_string() const override;  // "SingleDeviceSharding(device=CpuDevice(id=0), memory_kind=device)"
  size_t hash() const noexcept override;
  bool equals(const Sharding& other) const noexcept override;
  ShardingRef with_memory_kind(MemoryKind kind) const override;

 private:
  SingleDeviceSharding(DeviceListRef device, MemoryKind kind);
  ShardDomains::Names names(std::string_view operation) const override;
};

}  // namespace artifex_devices
