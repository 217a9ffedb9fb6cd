// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "artifex_devices/device/client.h"

namespace artifex_devices {

/// Devices of one client in an order that counts; keeps the client alive. Immutable.
class DeviceList {
 public:
  /// Throws InvalidArgument for an empty list, devices of different clients, and duplicates (naming them).
  static std::shared_ptr<const DeviceList> make(std::vector<Device*> devices, std::string_view operation);

  int64_t size() const noexcept { return static_cast<int64_t>(devices_.size()); }
  Device* operator[](int64_t position) const noexcept { return devices_[static_cast<size_t>(position)]; }
  const std::vector<Device*>& devices() const noexcept { return devices_; }
  const ClientRef& client() const noexcept { return client_; }
  bool is_fully_addressable() const noexcept { return true; }
  /// All on one arena: replicas can share memory and everything is one copy away.
  bool on_one_arena() const noexcept { return on_one_arena_; }
  bool contains(const Device* device) const noexcept;
  int64_t position_of(const Device* device) const noexcept;  // -1: not in the list
  size_t hash() const noexcept { return hash_; }
  friend bool operator==(const DeviceList& a, const DeviceList& b) noexcept {
    return &a == &b || (a.hash_ == b.hash_ && a.devices_ == b.devices_);
  }

 private:
  DeviceList() = default;
  ClientRef client_;
  std::vector<Device*> devices_;
  bool on_one_arena_ = true;
  bool is_range_ = false;  // ids in ascending order without a gap
  size_t hash_ = 0;
};

using DeviceListRef = std::shared_ptr<const DeviceList>;

}  // namespace artifex_devices
