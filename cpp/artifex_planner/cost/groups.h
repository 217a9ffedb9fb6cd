// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "artifex_devices/cluster/cluster.h"
#include "artifex_planner/cost/collectives.h"

namespace artifex_devices::planner {

/// The devices of a cluster as a group that the formulas support, with the cluster's rates: in each slice the same box
/// of chips, evenly spaced along each axis of a torus. Returns none for any other set. Devices of one chip count as
/// one; where a chip's other devices are not in the group, they get their share of its links. Throws InvalidArgument
/// for no devices, repeated ones and ids that are not devices, Unavailable for rates that are needed and not known.
/// Example: devices 0, 2, 4 and 6 of a ring of 8 chips: one axis of 4 with stride 2 that wraps.
std::optional<NodeGroup> placed_group(const Cluster& cluster, const std::vector<int64_t>& devices);
/// The same for a group of a mesh. Throws InvalidArgument, as an error of `operation`, for devices that are not a box.
NodeGroup mesh_group(const Cluster& cluster, const std::vector<int64_t>& devices, std::string_view operation);

/// Costs of a collective in the slowest of groups that work at once, cheapest algorithm first. Of equals the first
/// group counts. There is at least one group. By default at published rates.
std::vector<TransferCost> slowest_costs(CollectiveOp op, double bytes, std::span<const NodeGroup> groups,
                                        const Efficiency& efficiency = ideal_efficiency());
/// The cheapest algorithm, with its bound.
TransferPrice price_collective(CollectiveOp op, double bytes, std::span<const NodeGroup> groups,
                               const Efficiency& efficiency);

}  // namespace artifex_devices::planner
