// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/device/device_list.h"

#include <algorithm>
#include <limits>
#include <string>

#include "artifex_devices/base/shape.h"
#include "artifex_devices/base/shortened_list.h"
#include "artifex_devices/base/throw_error.h"

namespace artifex_devices {
namespace {

std::vector<Device*> repeated(std::vector<Device*> devices) {
  // A mark for each device is faster than sorting, except for a few devices of very many.
  const auto all = static_cast<size_t>(devices[0]->client().device_count());
  if (devices.size() > all / 64) {
    std::vector<bool> seen(all);
    const bool none = std::ranges::none_of(devices, [&](const Device* device) {
      const int64_t id = device->id().number();
      const bool before = seen[id];
      seen[id] = true;
      return before;
    });
    if (none) return {};
  }
  std::ranges::sort(devices, {}, &Device::id);
  std::vector<Device*> twice;
  for (size_t i = 1; i < devices.size(); ++i) {
    if (devices[i] == devices[i - 1] && (twice.empty() || twice.back() != devices[i])) twice.push_back(devices[i]);
  }
  return twice;
}

}  // namespace

std::shared_ptr<const DeviceList> DeviceList::make(std::vector<Device*> devices, std::string_view operation) {
  if (devices.empty()) throw_error("{}: the list of devices is empty; give at least one device", operation);
  for (size_t i = 0; i < devices.size(); ++i) {
    if (!devices[i])
      throw_error("{}: device {} of {} is null; give devices of one client", operation, i, devices.size());
  }
  const Client& client = devices[0]->client();
  bool ascending = true;
  for (size_t i = 1; i < devices.size(); ++i) {
    if (&devices[i]->client() != &client) {
      throw_error(
          "{}: the devices are of different clients (worlds): {} at position 0 is of client {}, {} at position {} of "
          "client {}; use devices of one simulate() world only",
          operation, devices[0]->to_string(), client.uid(), devices[i]->to_string(), i, devices[i]->client().uid());
    }
    ascending = ascending && devices[i]->id() > devices[i - 1]->id();
  }
  if (!ascending) {
    if (const auto twice = repeated(devices); !twice.empty()) {
      throw_error("{}: {} in the list of {} devices more than once: {}; name each device once", operation,
                  twice.size() == 1 ? "one device is" : fmt::format("{} devices are", twice.size()), devices.size(),
                  shortened_list(twice, [](const Device* device) { return device->to_string(); }));
    }
  }

  std::shared_ptr<DeviceList> list(new DeviceList());
  list->client_ = devices[0]->client().shared_from_this();
  for (const Device* device : devices) {
    list->is_fully_addressable_ = list->is_fully_addressable_ && device->is_addressable();
  }
  ArenaIndex arena;  // of the first local device
  size_t hash = static_cast<size_t>(client.uid());
  for (size_t i = 0; i < devices.size(); ++i) {
    const Device& device = *devices[i];
    hash = hash_mix(hash, static_cast<size_t>(device.id().number()));
    if (!device.is_addressable()) continue;
    if (!list->is_fully_addressable_) list->addressable_.emplace_back(static_cast<int64_t>(i));
    if (arena.is_none()) arena = device.arena_index();
    list->on_one_arena_ = list->on_one_arena_ && device.arena_index() == arena;
  }
  list->hash_ = hash;
  list->is_range_ = ascending && devices.back()->id() == devices.front()->id() + (std::ssize(devices) - 1);
  list->devices_ = IdVector<Position, Device*>(std::move(devices));
  return list;
}

std::vector<ProcessIndex> DeviceList::processes() const {
  std::vector<ProcessIndex> found;
  for (const Device* device : devices_) {
    if (found.empty() || found.back() != device->process_index()) found.push_back(device->process_index());
  }
  std::ranges::sort(found);
  found.erase(std::ranges::unique(found).begin(), found.end());
  return found;
}

bool DeviceList::contains(const Device* device) const noexcept { return !position_of(device).is_none(); }

Position DeviceList::position_of(const Device* device) const noexcept {
  if (!device || &device->client() != client_.get()) return {};
  if (is_range_) {
    const int64_t position = device->id().number() - devices_.front()->id().number();
    return position >= 0 && position < size() ? Position(position) : Position();
  }
  const auto found = std::ranges::find(devices_, device);
  return found == devices_.end() ? Position() : Position(found - devices_.begin());
}

std::vector<Device*> find_devices(const Client& client, const std::string& platform, const std::vector<DeviceId>& ids,
                                  std::string_view operation) {
  std::vector<Device*> found;
  std::vector<DeviceId> missing;
  for (const DeviceId id : ids) {
    if (platform == client.platform() && !id.is_none() && id.number() < client.device_count()) {
      found.push_back(client.device(id));
    } else {
      missing.push_back(id);
    }
  }
  if (missing.empty()) return found;
  constexpr size_t kMostNamed = 8;
  std::string names;
  for (size_t i = 0; i < std::min(missing.size(), kMostNamed); ++i) {
    names += fmt::format("{}{}:{}", i == 0 ? "" : ", ", platform, missing[i].number());
  }
  if (missing.size() > kMostNamed) names += fmt::format(", ... ({} in all)", missing.size());
  const int64_t highest = std::ranges::max_element(ids)->number();
  const int64_t needed = highest == std::numeric_limits<int64_t>::max() ? highest : highest + 1;
  const bool one = missing.size() == 1;
  throw_error(
      "{}: device{} {} {} not here; expected {}:0 to {}:{}, the devices of this world; open a world that has {}, such "
      "as `with simulate({}):`, and try again",
      operation, one ? "" : "s", names, one ? "is" : "are", client.platform(), client.platform(),
      client.device_count() - 1, one ? "it" : "them", std::max<int64_t>(needed, 1));
}

}  // namespace artifex_devices
