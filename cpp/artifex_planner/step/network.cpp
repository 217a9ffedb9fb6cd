// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/step/network.h"

#include <algorithm>

#include "artifex_devices/base/throw_error.h"
#include "artifex_planner/cost/groups.h"
#include "artifex_planner/cost/position_ranges.h"

namespace artifex_devices::planner {
namespace {

constexpr size_t kMostBoxes = 16;  // that other groups are compared to

std::vector<NodeGroup> without_equals(std::vector<NodeGroup> groups) {
  const auto key = [](const NodeGroup& group) {
    std::vector<double> values = {static_cast<double>(group.nodes), group.egress, group.latency.step};
    values.push_back(static_cast<double>(group.local.index()));
    if (const auto* torus = std::get_if<TorusGroup>(&group.local)) {
      values.push_back(torus->link);
      for (const GroupAxis& axis : torus->axes) {
        values.insert(values.end(),
                      {static_cast<double>(axis.size), axis.wrap ? 1.0 : 0.0, static_cast<double>(axis.stride)});
      }
    }
    values.push_back(static_cast<double>(devices_of(group.local)));
    return values;
  };
  std::vector<NodeGroup> result;
  for (NodeGroup& group : groups) {
    if (std::ranges::none_of(result, [&](const NodeGroup& other) { return key(other) == key(group); })) {
      result.push_back(std::move(group));
    }
  }
  return result;
}

/// A placed group. Another group with the same differences of ids is the same box elsewhere, unless it crosses an end
/// of the cluster.
class PlacedBox {
 public:
  PlacedBox(const Cluster& cluster, std::vector<int64_t> devices) : devices_(std::move(devices)) {
    radices_ = {cluster.chip().devices_per_chip};
    radices_.insert(radices_.end(), cluster.inside().dims.begin(), cluster.inside().dims.end());
    radices_.push_back(cluster.slices());
    least_ = *std::ranges::min_element(devices_);
    digits_ = digits(least_);
    extents_.assign(radices_.size(), 0);
    for (const int64_t device : devices_) {
      const std::vector<int64_t> own = digits(device);
      for (size_t i = 0; i < own.size(); ++i) extents_[i] = std::max(extents_[i], own[i] - digits_[i]);
    }
  }

  /// `id_of(i)` is the device of member i; both groups have the same size.
  template <class IdOf>
  bool is_same_box(IdOf id_of) const {
    const int64_t shift = id_of(0) - devices_[0];
    for (size_t i = 1; i < devices_.size(); ++i) {
      if (id_of(i) - devices_[i] != shift) return false;
    }
    int64_t rest = least_ + shift;
    for (size_t i = 0; i < radices_.size(); ++i) {
      if (rest % radices_[i] + extents_[i] >= radices_[i]) return false;
      rest /= radices_[i];
    }
    return true;
  }

 private:
  std::vector<int64_t> digits(int64_t id) const {
    std::vector<int64_t> result;
    for (const int64_t radix : radices_) {
      result.push_back(id % radix);
      id /= radix;
    }
    return result;
  }

  std::vector<int64_t> devices_;
  std::vector<int64_t> radices_;  // cores, then chips along each axis, then slices
  std::vector<int64_t> digits_;   // of the smallest id: the corner of a box
  std::vector<int64_t> extents_;
  int64_t least_ = 0;
};

}  // namespace

StepNetwork step_network(const Cluster& cluster, const std::vector<int64_t>& sizes, const std::vector<int64_t>& devices,
                         const std::vector<MeshAxes>& wanted, std::string_view operation) {
  int64_t positions = 1;
  for (const int64_t size : sizes) positions *= size;
  if (positions != static_cast<int64_t>(devices.size()) || sizes.size() > kStepMeshAxes) {
    throw_error(
        "{}: {} devices for a mesh of {} axes and {} positions; expected one for each position, and at most {} axes",
        operation, devices.size(), sizes.size(), positions, kStepMeshAxes);
  }
  StepNetwork network{sizes, std::vector<std::vector<NodeGroup>>(size_t{1} << sizes.size())};
  const std::vector<PositionRange> all_ranges = mesh_ranges(sizes);
  for (const MeshAxes axes : wanted) {
    std::vector<PositionRange> ranges;
    for (size_t axis = 0; axis < sizes.size(); ++axis) {
      if ((axes >> axis & 1) != 0) ranges.push_back(all_ranges[axis]);
    }
    const PositionGroups groups = groups_along(ranges, positions);
    std::vector<NodeGroup> kinds;
    std::vector<PlacedBox> boxes;
    for (const int64_t first : groups.firsts) {
      const auto id_of = [&](size_t i) { return devices[static_cast<size_t>(first + groups.members[i])]; };
      if (std::ranges::any_of(boxes, [&](const PlacedBox& box) { return box.is_same_box(id_of); })) continue;
      std::vector<int64_t> group(groups.members.size());
      for (size_t i = 0; i < group.size(); ++i) group[i] = id_of(i);
      kinds.push_back(mesh_group(cluster, group, operation));
      kinds = without_equals(std::move(kinds));
      if (boxes.size() < kMostBoxes) boxes.emplace_back(cluster, std::move(group));
    }
    network.groups[axes] = std::move(kinds);
  }
  return network;
}

}  // namespace artifex_devices::planner
