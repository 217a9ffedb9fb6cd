// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/render/traffic_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

#include "artifex_devices/base/bytes_text.h"
#include "artifex_devices/base/throw_error.h"

namespace artifex_devices {
namespace {

using Bytes = std::map<std::pair<int64_t, int64_t>, int64_t>;  // by (to, from)

TrafficGroups grouped(TrafficGroups::Kind kind, const Bytes& by_device, const std::vector<int64_t>& from,
                      const std::vector<int64_t>& to, const std::function<int64_t(int64_t)>& group_of) {
  TrafficGroups groups;
  groups.kind = kind;
  std::set<int64_t> sources;
  std::set<int64_t> destinations;
  for (const int64_t device : from) sources.insert(group_of(device));
  for (const int64_t device : to) destinations.insert(group_of(device));
  groups.from.assign(sources.begin(), sources.end());
  groups.to.assign(destinations.begin(), destinations.end());
  Bytes between;
  for (const auto& [pair, bytes] : by_device) {
    const auto [destination, source] = pair;
    if (group_of(destination) == group_of(source)) {
      groups.internal[group_of(destination)] += bytes;
    } else {
      between[{group_of(destination), group_of(source)}] += bytes;
    }
  }
  for (const auto& [pair, bytes] : between) groups.arrows.push_back({pair.second, pair.first, bytes});
  return groups;
}

/// The arrows into the device that receives most.
TrafficGroups of_the_busiest(const TrafficGroups& all, int64_t max_arrows) {
  std::map<int64_t, int64_t> received;
  for (const TrafficGroups::Arrow& arrow : all.arrows) received[arrow.to] += arrow.bytes;
  const auto busiest =
      std::ranges::max_element(received, [](const auto& a, const auto& b) { return a.second < b.second; });
  TrafficGroups groups;
  groups.kind = TrafficGroups::Kind::kBusiest;
  for (const TrafficGroups::Arrow& arrow : all.arrows) {
    if (arrow.to == busiest->first) groups.arrows.push_back(arrow);
  }
  std::ranges::stable_sort(groups.arrows, [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  if (static_cast<int64_t>(groups.arrows.size()) > max_arrows) {
    groups.arrows.resize(static_cast<size_t>(max_arrows));
  }
  std::ranges::sort(groups.arrows, {}, &TrafficGroups::Arrow::from);
  for (const TrafficGroups::Arrow& arrow : groups.arrows) groups.from.push_back(arrow.from);
  groups.to = {busiest->first};
  if (const auto internal = all.internal.find(busiest->first); internal != all.internal.end())
    groups.internal.insert(*internal);
  return groups;
}

}  // namespace

TrafficGroups group_traffic(const std::vector<DeviceTraffic>& traffic, const std::vector<int64_t>& from,
                            const std::vector<int64_t>& to, const Cluster* cluster, int64_t max_arrows,
                            int64_t max_groups) {
  const std::set<int64_t> sources(from.begin(), from.end());
  const std::set<int64_t> destinations(to.begin(), to.end());
  Bytes by_device;
  for (const DeviceTraffic& each : traffic) {
    if (!sources.contains(each.from) || !destinations.contains(each.to)) {
      throw_error(
          "reshard_svg: traffic goes from device {} to {}; expected devices of the source and of the destination",
          each.from, each.to);
    }
    if (each.bytes > 0) by_device[{each.to, each.from}] += each.bytes;
  }
  const auto fits = [&](const TrafficGroups& groups) {
    return static_cast<int64_t>(groups.arrows.size()) <= max_arrows &&
           static_cast<int64_t>(std::max(groups.from.size(), groups.to.size())) <= max_groups;
  };
  const TrafficGroups devices =
      grouped(TrafficGroups::Kind::kDevices, by_device, from, to, [](int64_t device) { return device; });
  TrafficGroups found = devices;
  if (!fits(found) && cluster != nullptr) {
    const auto host = [&](int64_t device) { return cluster->place_of(device).process; };
    found = grouped(TrafficGroups::Kind::kHosts, by_device, from, to, host);
    if (!fits(found) || found.arrows.empty()) {
      const auto slice = [&](int64_t device) { return cluster->place_of(device).slice; };
      found = grouped(TrafficGroups::Kind::kSlices, by_device, from, to, slice);
    }
  }
  const bool has_arrows = found.kind == TrafficGroups::Kind::kDevices || !found.arrows.empty();
  if ((!fits(found) || !has_arrows) && !devices.arrows.empty()) found = of_the_busiest(devices, max_arrows);
  found.pairs = static_cast<int64_t>(devices.arrows.size());
  return found;
}

std::string TrafficGroups::note(const std::vector<std::pair<std::string, int64_t>>& bytes_by_link) const {
  if (kind == Kind::kDevices) return "";
  std::string text;
  if (kind == Kind::kBusiest) {
    text = fmt::format("arrows: what the busiest device receives, {} of {} pairs of devices", arrows.size(), pairs);
  } else {
    text = fmt::format("arrows: between {}, which stand for {} pairs of devices",
                       kind == Kind::kHosts ? "hosts" : "slices", pairs);
  }
  std::string links;
  for (const auto& [link, bytes] : bytes_by_link) {
    if (bytes > 0) links += fmt::format("{}{} {}", links.empty() ? "; in all " : ", ", bytes_text(bytes), link);
  }
  return text + links;
}

}  // namespace artifex_devices
