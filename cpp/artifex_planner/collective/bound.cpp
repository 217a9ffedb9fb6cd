// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/collective/bound.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string>

#include "artifex_devices/base/throw_error.h"
#include "artifex_planner/cost/position_ranges.h"

namespace artifex_devices::planner {
namespace {

constexpr int64_t kMostMessages = int64_t{1} << 22;

/// Bytes of numbered chips or slices.
class Totals {
 public:
  void add(int64_t number, double bytes) {
    const auto at = static_cast<size_t>(number);
    if (at >= bytes_.size()) bytes_.resize(std::max(at + 1, 2 * bytes_.size()));
    most_ = std::max(most_, bytes_[at] += bytes);
  }
  double most() const noexcept { return most_; }
  const std::vector<double>& bytes() const noexcept { return bytes_; }

 private:
  std::vector<double> bytes_;
  double most_ = 0;
};

/// The parts of a group: numbers of chips or slices, each once.
std::vector<int64_t> parts_of(const std::vector<int64_t>& group, int64_t devices_per_part) {
  std::vector<int64_t> parts;
  parts.reserve(group.size());
  for (const int64_t id : group) {
    if (parts.empty() || parts.back() != id / devices_per_part) parts.push_back(id / devices_per_part);
  }
  if (!std::ranges::is_sorted(parts)) std::ranges::sort(parts);
  parts.erase(std::unique(parts.begin(), parts.end()), parts.end());
  return parts;
}

/// Checks that groups have one size, and devices of the cluster.
void check_groups(const Cluster& cluster, const std::vector<std::vector<int64_t>>& groups) {
  for (const auto& group : groups) {
    if (group.size() != groups.front().size()) {
      throw_error(
          "plan_collective: a group has {} devices, another {}; expected groups of one size; give each the same number of devices",
          groups.front().size(), group.size());
    }
    for (const int64_t id : group) {
      if (id >= 0 && id < cluster.device_count()) continue;
      throw_error("plan_collective: device {} is not in the cluster {}; expected 0 to {}; name devices of the cluster",
                  id, cluster.name(), cluster.device_count() - 1);
    }
  }
}

void check_pairs(const PermutePairs& pairs, int64_t size) {
  std::set<int64_t> sources;
  std::set<int64_t> destinations;
  for (const auto& [from, to] : pairs) {
    if (std::min(from, to) < 0 || std::max(from, to) >= size) {
      throw_error("plan_collective: perm has the pair ({}, {}); expected positions 0 to {} of a group; correct it",
                  from, to, size - 1);
    }
    if (!sources.insert(from).second) {
      throw_error("plan_collective: perm sends from position {} twice; expected each at most once; correct it", from);
    }
    if (!destinations.insert(to).second) {
      throw_error("plan_collective: perm sends to position {} twice; expected each at most once; correct it", to);
    }
  }
}

/// One axis of a cluster, as a range of the ids of devices.
struct ClusterAxis {
  std::string name;
  int64_t size;
  int64_t stride;
};

std::vector<ClusterAxis> axes_of(const Cluster& cluster) {
  const bool is_torus = cluster.inside().kind == NetworkKind::kTorus;
  std::vector<ClusterAxis> axes;
  int64_t stride = cluster.chip().devices_per_chip;
  for (size_t i = 0; i < cluster.inside().dims.size(); ++i) {
    axes.push_back({is_torus ? std::string(1, "xyz"[i]) : "chip", cluster.inside().dims[i], stride});
    stride *= axes.back().size;
  }
  axes.insert(axes.begin(), {"slice", cluster.slices(), stride});
  return axes;
}

}  // namespace

CollectiveBound collective_bound(CollectiveOp op, double bytes, const Cluster& cluster,
                                 const std::vector<std::vector<int64_t>>& groups, int64_t alike) {
  CollectiveBound bound;
  Totals chips;
  Totals slices;
  for (const auto& group : groups) {
    bound.device_bytes = received_bytes(op, bytes, static_cast<int64_t>(group.size()));
    const auto add = [&](int64_t devices_per_part, Totals* totals) {
      const std::vector<int64_t> parts = parts_of(group, devices_per_part);
      const double into_each = received_bytes(op, bytes, static_cast<int64_t>(parts.size()));
      for (const int64_t part : parts) totals->add(part, into_each);
      return static_cast<int64_t>(parts.size());
    };
    add(cluster.chip().devices_per_chip, &chips);
    bound.slices = std::max(bound.slices, add(cluster.devices_per_slice(), &slices));
  }
  bound.bytes_by_chip = chips.bytes();
  bound.chip_bytes = chips.most();
  bound.slice_bytes = slices.most() * static_cast<double>(alike);
  return bound;
}

PermuteCost permute_cost(double block_bytes, const PermutePairs& pairs, const Cluster& cluster,
                         const std::vector<std::vector<int64_t>>& groups, const Efficiency& efficiency) {
  const auto size = static_cast<int64_t>(groups.front().size());
  check_pairs(pairs, size);
  check_groups(cluster, groups);
  if (static_cast<int64_t>(groups.size()) > kMostMessages / std::max<int64_t>(static_cast<int64_t>(pairs.size()), 1)) {
    throw_error("plan_collective: {} groups send {} messages each; expected at most {} in all; plan a smaller cluster",
                groups.size(), pairs.size(), kMostMessages);
  }
  std::vector<DeviceMessage> messages;  // of blocks
  Totals into_chips;
  Totals out_of_chips;
  Totals slices;
  PermuteCost result;
  for (const auto& group : groups) {
    for (const auto& [from, to] : pairs) {
      if (from == to) continue;
      const DeviceMessage& message =
          messages.emplace_back(DeviceMessage{group[static_cast<size_t>(from)], group[static_cast<size_t>(to)], 1});
      const ClusterLink link = link_between(cluster, message.from, message.to);
      if (link >= ClusterLink::kInside) {
        into_chips.add(message.to / cluster.chip().devices_per_chip, block_bytes);
        out_of_chips.add(message.from / cluster.chip().devices_per_chip, block_bytes);
      }
      if (link != ClusterLink::kNetwork) continue;
      result.bound.slices = cluster.slices();
      slices.add(message.to / cluster.devices_per_slice(), block_bytes);
    }
  }
  result.price = price_messages(cluster, messages, efficiency, "plan_collective", block_bytes).price;
  if (!messages.empty()) result.bound.device_bytes = block_bytes;
  result.bound.chip_bytes = std::max(into_chips.most(), out_of_chips.most());
  std::vector<double>& by_chip = result.bound.bytes_by_chip = into_chips.bytes();
  const std::vector<double>& out = out_of_chips.bytes();
  by_chip.resize(std::max(by_chip.size(), out.size()), 0);
  for (size_t chip = 0; chip < out.size(); ++chip) by_chip[chip] = std::max(by_chip[chip], out[chip]);
  result.bound.slice_bytes = slices.most();
  if (messages.empty()) result.price.expected.algorithm = "none";
  return result;
}

std::vector<std::vector<int64_t>> groups_along(const Cluster& cluster, const std::vector<std::string>& names,
                                               bool by_id) {
  std::vector<ClusterAxis> others = axes_of(cluster);
  std::vector<ClusterAxis> chosen;
  for (const std::string& name : names) {
    const auto found = std::ranges::find(others, name, &ClusterAxis::name);
    if (found != others.end()) {
      chosen.push_back(*found);
      others.erase(found);
      continue;
    }
    const bool twice = std::ranges::find(chosen, name, &ClusterAxis::name) != chosen.end();
    std::vector<std::string> known;
    for (const ClusterAxis& axis : axes_of(cluster)) known.push_back(axis.name);
    throw_error(
        "plan_collective: {:?} {} the cluster {}; expected some of {}; \"slice\" is the network between slices or "
        "nodes",
        name, twice ? "is named twice among the axes of" : "is not an axis of", cluster.name(), fmt::join(known, ", "));
  }
  if (by_id) std::ranges::sort(chosen, std::greater<>(), &ClusterAxis::stride);
  std::vector<PositionRange> ranges;
  for (const ClusterAxis& axis : chosen) ranges.push_back({axis.size, axis.stride});
  ranges.push_back({cluster.chip().devices_per_chip, 1});
  const PositionGroups along = groups_along(ranges, cluster.device_count());
  std::vector<std::vector<int64_t>> groups;
  groups.reserve(along.firsts.size());
  for (const int64_t first : along.firsts) {
    std::vector<int64_t>& group = groups.emplace_back(along.members);
    for (int64_t& member : group) member += first;
  }
  return groups;
}

}  // namespace artifex_devices::planner
