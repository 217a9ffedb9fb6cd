// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "artifex_devices/cluster/cluster.h"
#include "artifex_planner/cost/collectives.h"
#include "artifex_planner/step/einsum_moves.h"
#include "artifex_planner/step/model.h"

namespace artifex_devices::planner {

/// The groups of a mesh for each set of its axes (as bits). Groups that work at the same time are listed once per kind;
/// the slowest counts. Sets that no collective uses may be empty.
struct StepNetwork {
  std::vector<int64_t> sizes;
  std::vector<std::vector<NodeGroup>> groups;
};
/// Groups of a mesh whose positions are placed on `devices` (ids, row-major), for the sets of axes in `wanted`.
/// Throws InvalidArgument for groups that are not boxes of the cluster, Unavailable for rates that are not known.
StepNetwork step_network(const Cluster& cluster, const std::vector<int64_t>& sizes, const std::vector<int64_t>& devices,
                         const std::vector<MeshAxes>& wanted, std::string_view operation = kPlanStep);

}  // namespace artifex_devices::planner
