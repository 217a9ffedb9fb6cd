// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "artifex_devices/base/id.h"
#include "artifex_devices/device/client.h"

namespace artifex_devices {

/// An ordered list of devices of one client; keeps the client alive. Immutable.
class DeviceList {
 public:
  /// Throws InvalidArgument for an empty list, devices of different clients, and duplicates (naming them).
  static std::shared_ptr<const DeviceList> make(std::vector<Device*> devices, std::string_view operation);

  int64_t size() const noexcept { return devices_.size(); }
  Device* front() const noexcept { return devices_.front(); }
  Device* operator[](Position position) const noexcept { return devices_[position]; }
  /// In the order of their positions.
  const std::vector<Device*>& devices() const noexcept { return devices_.values(); }
  const ClientRef& client() const noexcept { return client_; }
  /// Returns whether all devices belong to this process.
  bool is_fully_addressable() const noexcept { return is_fully_addressable_; }
  int64_t addressable_count() const noexcept {
    return is_fully_addressable_ ? size() : static_cast<int64_t>(addressable_.size());
  }
  /// Returns the position of the i-th device of this process; i is below addressable_count().
  Position addressable_position(int64_t i) const noexcept {
    return is_fully_addressable_ ? Position(i) : addressable_[i];
  }
  /// Returns whether this process's devices share one arena; replicas can then share memory.
  bool on_one_arena() const noexcept { return on_one_arena_; }
  /// The processes that own the devices, ascending.
  std::vector<ProcessIndex> processes() const;
  bool contains(const Device* device) const noexcept;
  Position position_of(const Device* device) const noexcept;  // none: not in the list
  size_t hash() const noexcept { return hash_; }
  friend bool operator==(const DeviceList& a, const DeviceList& b) noexcept {
    return &a == &b || (a.hash_ == b.hash_ && a.devices_ == b.devices_);
  }

 private:
  DeviceList() = default;
  ClientRef client_;
  IdVector<Position, Device*> devices_;
  std::vector<Position> addressable_;  // empty if all devices belong to this process
  bool is_fully_addressable_ = true;
  bool on_one_arena_ = true;
  bool is_range_ = false;  // ids in ascending order without a gap
  size_t hash_ = 0;
};

using DeviceListRef = std::shared_ptr<const DeviceList>;

/// The devices of a client by platform and id, as pickles name them. Throws InvalidArgument that names every missing
/// one; `operation` begins the message.
std::vector<Device*> find_devices(const Client& client, const std::string& platform, const std::vector<DeviceId>& ids,
                                  std::string_view operation);

}  // namespace artifex_devices
