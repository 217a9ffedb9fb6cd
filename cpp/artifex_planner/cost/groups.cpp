// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/cost/groups.h"

#include <algorithm>
#include <utility>

#include "artifex_devices/base/throw_error.h"

namespace artifex_devices::planner {
namespace {

/// The box that chips of one slice form: values of each coordinate.
struct ChipBox {
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
  friend bool operator==(const ChipBox&, const ChipBox&) = default;
};

std::optional<ChipBox> box_of(const std::vector<int64_t>& chips, const std::vector<int>& dims) {
  ChipBox box;
  int64_t volume = 1;
  int64_t inner = 1;
  for (const int dim : dims) {
    std::vector<bool> has(static_cast<size_t>(dim), false);
    for (const int64_t chip : chips) has[static_cast<size_t>(chip / inner % dim)] = true;
    inner *= dim;
    const int64_t count = std::ranges::count(has, true);
    const int64_t first = std::ranges::find(has, true) - has.begin();
    const int64_t last = has.rend() - std::find(has.rbegin(), has.rend(), true) - 1;
    const int64_t stride = count > 1 ? (last - first) / (count - 1) : 1;
    for (int64_t i = 0; i < count; ++i) {
      if (!has[static_cast<size_t>(first + i * stride)]) return std::nullopt;
    }
    box.sizes.push_back(count);
    box.strides.push_back(stride);
    volume *= count;
  }
  if (volume != static_cast<int64_t>(chips.size())) return std::nullopt;
  return box;
}

/// Whether the switches of a node compute sums (NVLink SHARP), as the switches of NVLink 4 and 5 do.
bool switches_add(const SliceNetwork& inside) {
  return inside.kind == NetworkKind::kSwitch && (inside.link_kind == "NVLink 4" || inside.link_kind == "NVLink 5");
}

void check_devices(const Cluster& cluster, const std::vector<int64_t>& devices) {
  if (devices.empty()) throw_error("plan_collective: the group has no devices; expected 1 or more");
  std::vector<int64_t> sorted = devices;
  if (!std::ranges::is_sorted(sorted)) std::ranges::sort(sorted);
  if (sorted.front() < 0 || sorted.back() >= cluster.device_count()) {
    throw_error("plan_collective: device {} is not in the cluster {}; expected 0 to {}",
                sorted.front() < 0 ? sorted.front() : sorted.back(), cluster.name(), cluster.device_count() - 1);
  }
  if (const auto twice = std::ranges::adjacent_find(sorted); twice != sorted.end()) {
    throw_error("plan_collective: device {} is in the group twice; expected each once", *twice);
  }
}

}  // namespace

std::optional<NodeGroup> placed_group(const Cluster& cluster, const std::vector<int64_t>& devices) {
  check_devices(cluster, devices);
  const int64_t per_chip = cluster.chip().devices_per_chip;
  const int64_t per_slice = cluster.chips_per_slice();
  std::vector<int64_t> chips(devices.size());
  std::ranges::transform(devices, chips.begin(), [&](int64_t id) { return id / per_chip; });
  if (!std::ranges::is_sorted(chips)) std::ranges::sort(chips);
  // The same number of devices of each chip, the same box of each slice.
  const auto cores = static_cast<size_t>(std::ranges::count(chips, chips.front()));
  std::vector<std::vector<int64_t>> chips_of_slices;
  int64_t slice = -1;
  for (size_t i = 0; i < chips.size(); i += cores) {
    if (i + cores > chips.size() || chips[i] != chips[i + cores - 1]) return std::nullopt;
    if (i > 0 && chips[i] == chips[i - 1]) return std::nullopt;
    if (chips[i] / per_slice != slice) {
      slice = chips[i] / per_slice;
      chips_of_slices.emplace_back();
    }
    chips_of_slices.back().push_back(chips[i] % per_slice);
  }
  const SliceNetwork& inside = cluster.inside();
  const bool is_torus = inside.kind == NetworkKind::kTorus;
  const auto local_chips = static_cast<int64_t>(chips_of_slices.front().size());
  std::optional<ChipBox> box;
  for (const auto& each : chips_of_slices) {
    if (static_cast<int64_t>(each.size()) != local_chips) return std::nullopt;
    if (!is_torus || (box && each == chips_of_slices.front())) continue;
    const std::optional<ChipBox> own = box_of(each, inside.dims);
    if (!own || (box && *own != *box)) return std::nullopt;
    box = own;
  }

  const double share = static_cast<double>(cores) / static_cast<double>(per_chip);
  NodeGroup group{SwitchGroup{1, 1, {}}, static_cast<int64_t>(chips_of_slices.size()), 0, {}};
  if (local_chips > 1) {
    const double rate = cluster.link_bandwidth().value * share;
    const CollectiveLatency latency{0, cluster.link_latency().value};
    if (is_torus) {
      TorusGroup torus{.axes = {}, .link = rate, .latency = latency};
      for (size_t axis = 0; axis < inside.dims.size(); ++axis) {
        const bool whole = box->sizes[axis] * box->strides[axis] == inside.dims[axis];
        torus.axes.push_back({box->sizes[axis], inside.wraps[axis] && whole, box->strides[axis]});
      }
      group.local = std::move(torus);
    } else if (inside.kind == NetworkKind::kSwitch) {
      group.local = SwitchGroup{local_chips, rate, latency, switches_add(inside)};
    } else {
      group.local = FullMeshGroup{local_chips, rate, latency};
    }
  }
  if (group.nodes > 1) {
    group.egress = cluster.network_bandwidth().value * share;
    group.latency = {0, cluster.network_latency().value};
  }
  return group;
}

NodeGroup mesh_group(const Cluster& cluster, const std::vector<int64_t>& devices, std::string_view operation) {
  std::optional<NodeGroup> placed = placed_group(cluster, devices);
  if (!placed) {
    throw_error(
        "{}: the {} devices of a group of the mesh, {} first, are not a box of the cluster {}; expected evenly spaced "
        "chips along its axes; order the mesh with mesh_utils.create_device_mesh",
        operation, devices.size(), devices.front(), cluster.name());
  }
  return *std::move(placed);
}

std::vector<TransferCost> slowest_costs(CollectiveOp op, double bytes, std::span<const NodeGroup> groups,
                                        const Efficiency& efficiency) {
  std::vector<TransferCost> slowest;
  for (const NodeGroup& group : groups) {
    std::vector<TransferCost> costs = collective_costs(op, bytes, group, efficiency);
    if (slowest.empty() || costs.front().seconds() > slowest.front().seconds()) slowest = std::move(costs);
  }
  return slowest;
}

TransferPrice price_collective(CollectiveOp op, double bytes, std::span<const NodeGroup> groups,
                               const Efficiency& efficiency) {
  return {slowest_costs(op, bytes, groups, efficiency).front(), slowest_costs(op, bytes, groups).front()};
}

}  // namespace artifex_devices::planner
