// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/reshard/price.h"

#include <algorithm>
#include <map>
#include <utility>

#include "artifex_devices/base/interrupt.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_planner/cost/groups.h"
#include "artifex_planner/cost/position_ranges.h"

namespace artifex_devices::planner {
namespace {

constexpr int64_t kMostPricedMessages = int64_t{1} << 22;

std::vector<PositionRange> ranges_of(const ReshardSequence& sequence, const ReshardStep& step) {
  std::vector<PositionRange> ranges;
  for (const int64_t axis : step.axes) {
    const SubAxis& sub = sequence.axes[static_cast<size_t>(axis)];
    ranges.push_back({sub.size, sub.position_stride});
  }
  return ranges;
}

/// Devices of the groups along the step's axes, one list for each group; all groups, or representatives.
struct StepGroups {
  std::vector<std::vector<int64_t>> devices;
  int64_t alike = 1;  // groups that are placed like each listed one
};

/// Whether all groups along the ranges are placed like the first one: positions are device ids, and the ranges are
/// digits of chips along the axes of tori, and of slices.
bool are_alike(const Cluster& cluster, const std::vector<PositionRange>& ranges, const std::vector<int64_t>& devices) {
  for (size_t i = 0; i < devices.size(); ++i) {
    if (devices[i] != static_cast<int64_t>(i)) return false;
  }
  std::vector<int64_t> boundaries{1, cluster.chip().devices_per_chip};
  for (const int dim : cluster.inside().dims) boundaries.push_back(boundaries.back() * dim);
  return std::ranges::all_of(ranges, [&](const PositionRange& range) { return are_digits(range, boundaries); });
}

StepGroups groups_of(const std::vector<PositionRange>& ranges, const std::vector<int64_t>& devices, bool one_of_all) {
  PositionGroups along = groups_along(ranges, static_cast<int64_t>(devices.size()));
  StepGroups groups;
  if (one_of_all) {
    groups.alike = static_cast<int64_t>(along.firsts.size());
    along.firsts.resize(1);
  }
  groups.devices = devices_of(along, devices);
  return groups;
}

/// The messages of a permute; replicas send one each where none keeps its own.
std::vector<DeviceMessage> messages_of_permute(const TileGrid& before, const TileGrid& after, int64_t shard_bytes,
                                               const std::vector<int64_t>& devices) {
  const IdVector<Position, TileId> had = before.tiles_by_position();
  const IdVector<Position, TileId> wanted = after.tiles_by_position();
  std::vector<DeviceMessage> messages;
  const bool has_replicas = after.replicas() > 1;
  for (const Position position : wanted.ids()) {
    if (had[position] == wanted[position]) continue;
    const Position holder = before.position(wanted[position], has_replicas ? after.replica(position) : 0);
    messages.push_back({devices[holder.number()], devices[position.number()], shard_bytes});
  }
  return messages;
}

TransferPrice price_as_ring(const Cluster& cluster, const std::vector<std::vector<int64_t>>& groups,
                            int64_t shard_bytes, const Efficiency& efficiency) {
  std::vector<DeviceMessage> messages;
  for (const auto& group : groups) {
    for (size_t i = 0; i < group.size(); ++i) {
      messages.push_back({group[i], group[(i + 1) % group.size()], shard_bytes});
    }
  }
  const auto rounds = static_cast<double>(groups.front().size() - 1);
  TransferPrice price = price_messages(cluster, messages, efficiency, "plan_reshard", rounds).price;
  for (TransferCost* cost : {&price.expected, &price.bound}) {
    cost->latency *= rounds;
    cost->algorithm = "ring in the order of the mesh";
  }
  return price;
}

TransferPrice price_as_messages(const Cluster& cluster, const std::vector<std::vector<int64_t>>& groups,
                                int64_t part_bytes, const Efficiency& efficiency) {
  const auto size = static_cast<int64_t>(groups.front().size());
  if (static_cast<int64_t>(groups.size()) * size > kMostPricedMessages / size) {
    throw_error(
        "plan_reshard: {} groups of {} devices are not boxes of the cluster {}, and too many to compute their "
        "messages one by one; expected at most {} messages; lay the mesh out with mesh_utils.create_device_mesh",
        groups.size(), size, cluster.name(), kMostPricedMessages);
  }
  std::vector<DeviceMessage> messages;
  for (const auto& group : groups) {
    for (const int64_t from : group) {
      for (const int64_t to : group) {
        if (from != to) messages.push_back({from, to, part_bytes});
      }
    }
  }
  TransferPrice price = price_messages(cluster, messages, efficiency).price;
  price.expected.algorithm = "direct";
  return price;
}

}  // namespace

std::vector<DeviceMessage> permute_messages(const ReshardSequence& sequence, size_t step,
                                            const std::vector<int64_t>& devices) {
  return messages_of_permute(sequence.grids[step], sequence.grids[step + 1], sequence.steps[step].shard_bytes, devices);
}

TransferPrice price_step(const Cluster& cluster, const ReshardSequence& sequence, size_t step,
                         const std::vector<int64_t>& devices, const Efficiency& efficiency) {
  const ReshardStep& what = sequence.steps[step];
  const TileGrid& before = sequence.grids[step];
  if (static_cast<int64_t>(devices.size()) != before.positions()) {
    throw_error("plan_reshard: {} devices are given for {} positions; expected one each", devices.size(),
                before.positions());
  }
  if (what.move == ReshardMove::kSlice) return {{.algorithm = "in place"}, {}};
  if (what.move == ReshardMove::kPermute) {
    return price_messages(cluster, permute_messages(sequence, step, devices), efficiency).price;
  }
  const std::vector<PositionRange> ranges = ranges_of(sequence, what);
  const StepGroups groups = groups_of(ranges, devices, are_alike(cluster, ranges, devices));
  const bool gathers = what.move == ReshardMove::kAllGather;
  const CollectiveOp op = gathers ? CollectiveOp::kAllGather : CollectiveOp::kAllToAll;
  const auto bytes = static_cast<double>(gathers ? what.shard_bytes_after : what.shard_bytes * what.group);
  std::vector<NodeGroup> boxes;
  for (const auto& group : groups.devices) {
    check_interrupt();
    std::optional<NodeGroup> placed = placed_group(cluster, group);
    if (!placed) {
      const auto all = groups.alike > 1 ? groups_of(ranges, devices, false).devices : groups.devices;
      return gathers ? price_as_ring(cluster, all, what.shard_bytes, efficiency)
                     : price_as_messages(cluster, all, what.shard_bytes / what.group, efficiency);
    }
    boxes.push_back(*std::move(placed));
  }
  return price_collective(op, bytes, boxes, efficiency);
}

int64_t network_bytes(const Cluster& cluster, const ReshardSequence& sequence, size_t step,
                      const std::vector<int64_t>& devices) {
  const ReshardStep& what = sequence.steps[step];
  if (cluster.slices() == 1 || what.move == ReshardMove::kSlice) return 0;
  const auto slice_of = [&](int64_t id) { return id / cluster.devices_per_slice(); };
  int64_t bytes = 0;
  if (what.move == ReshardMove::kPermute) {
    return bytes_by_link(cluster,
                         permute_messages(sequence, step, devices))[static_cast<size_t>(ClusterLink::kNetwork)];
  }
  const std::vector<PositionRange> ranges = ranges_of(sequence, what);
  const StepGroups groups = groups_of(ranges, devices, are_alike(cluster, ranges, devices));
  for (const auto& group : groups.devices) {
    std::map<int64_t, int64_t> members;  // by slice
    for (const int64_t device : group) ++members[slice_of(device)];
    for (const auto& [slice, count] : members) {
      const int64_t others = what.group - count;
      bytes += what.move == ReshardMove::kAllGather ? others * what.shard_bytes
                                                    : others * count * (what.shard_bytes / what.group);
    }
  }
  return bytes * groups.alike;
}

}  // namespace artifex_devices::planner
