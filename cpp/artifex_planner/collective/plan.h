// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "artifex_planner/collective/bound.h"

namespace artifex_devices::planner {

/// Bytes of one collective, named as in Python ("permute" too), over a group of `devices`.
struct CollectiveBytes {
  double received = 0;  // by each device; of a broadcast and a permute by the busiest
  double peak = 0;      // input and result of one device
};
void visit_fields(FieldsOf<CollectiveBytes> auto& bytes, const auto& visit) {
  visit("bytes_by_device", bytes.received);
  visit("peak_bytes", bytes.peak);
}
CollectiveBytes collective_bytes(std::string_view op, double bytes, int64_t devices) noexcept;

/// Algorithms and bounds of one collective on a cluster.
struct PlannedCollective {
  int64_t devices = 1;  // in each group
  int64_t groups = 1;
  std::vector<TransferCost> costs;  // expected, of the slowest group, cheapest first
  double bound_seconds = 0;         // of the cheapest at published rates
  CollectiveBytes bytes;
  CollectiveBound bound;
};
/// One of the algorithms, as a result.
struct CollectiveAlgorithm {
  TransferCost cost;
};
void visit_fields(FieldsOf<CollectiveAlgorithm> auto& algorithm, const auto& visit) {
  visit("estimate", algorithm.cost);
  visit("is_bound", algorithm.cost.is_bound);
}
void visit_fields(FieldsOf<PlannedCollective> auto& planned, const auto& visit) {
  visit("devices", planned.devices);
  visit("groups", planned.groups);
  visit("steps", std::vector<CollectiveAlgorithm>(planned.costs.begin(), planned.costs.end()));
  visit_fields(planned.bytes, visit);
  visit("bound", planned.bound_seconds);
  visit("lower_bound", planned.bound);
}

/// `op`: a CollectiveOp or "permute", which needs `pairs`. `groups`: device ids of the groups that work at once; none:
/// those along `axes` of the cluster. Throws InvalidArgument for other names, and groups that are not boxes of the
/// cluster; Unavailable for rates that are needed and not known.
PlannedCollective plan_collective(std::string_view op, double bytes, const Cluster& cluster,
                                  const std::vector<std::string>& axes, std::vector<std::vector<int64_t>> groups,
                                  const PermutePairs& pairs, const Efficiency& efficiency = ideal_efficiency());

}  // namespace artifex_devices::planner
