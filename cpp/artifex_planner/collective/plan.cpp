// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/collective/plan.h"

#include <utility>

#include "artifex_devices/base/throw_error.h"
#include "artifex_planner/cost/groups.h"

namespace artifex_devices::planner {

CollectiveBytes collective_bytes(std::string_view op, double bytes, int64_t devices) noexcept {
  const double part = bytes / static_cast<double>(devices);
  const bool gathers = op == "all_gather";
  const bool scatters = op == "reduce_scatter";
  const bool exchanges = op == "all_to_all" || op == "permute";
  CollectiveBytes result{0, (gathers || exchanges ? part : bytes) + (scatters || exchanges ? part : bytes)};
  if (const auto known = kind_from_name<CollectiveOp>(op)) {
    result.received = received_bytes(*known, bytes, devices);
  } else if (devices > 1) {
    result.received = part;
  }
  return result;
}

PlannedCollective plan_collective(std::string_view op, double bytes, const Cluster& cluster,
                                  const std::vector<std::string>& axes, std::vector<std::vector<int64_t>> groups,
                                  const PermutePairs& pairs, const Efficiency& efficiency) {
  const bool permutes = op == "permute";
  const auto known = kind_from_name<CollectiveOp>(op);
  if (!known && !permutes) {
    throw_error(
        "plan_collective: {:?} is not a collective; expected all_gather, reduce_scatter, all_reduce, all_to_all, "
        "broadcast or permute",
        op);
  }
  int64_t alike = 1;
  if (groups.empty()) {
    groups = groups_along(cluster, axes, !permutes);
    if (!permutes) {  // all groups are placed alike; only messages of a permute use links of other groups
      alike = static_cast<int64_t>(groups.size());
      groups.resize(1);
    }
  }
  PlannedCollective planned;
  planned.devices = static_cast<int64_t>(groups.front().size());
  planned.groups = static_cast<int64_t>(groups.size());
  planned.bytes = collective_bytes(op, bytes, planned.devices);
  if (permutes) {
    PermuteCost cost = permute_cost(bytes / static_cast<double>(planned.devices), pairs, cluster, groups, efficiency);
    planned.costs = {cost.price.expected};
    planned.bound_seconds = cost.price.bound.seconds();
    planned.bound = std::move(cost.bound);
    planned.bytes.received = planned.bound.device_bytes;
  } else {
    std::vector<NodeGroup> placed;
    for (const auto& group : groups) placed.push_back(mesh_group(cluster, group, "plan_collective"));
    planned.costs = slowest_costs(*known, bytes, placed, efficiency);
    planned.bound_seconds = slowest_costs(*known, bytes, placed).front().seconds();
    planned.bound = collective_bound(*known, bytes, cluster, groups, alike);
  }
  try {
    CollectiveBound& bound = planned.bound;
    bound.seconds = least_seconds(cluster, bound.bytes_by_chip, bound.slice_bytes, bound.slices);
  } catch (const Unavailable& error) {
    planned.bound.why_no_seconds = error.what();
  }
  return planned;
}

}  // namespace artifex_devices::planner
