// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "artifex_devices/cluster/cluster.h"
#include "artifex_planner/cost/collectives.h"
#include "artifex_planner/cost/messages.h"

namespace artifex_devices::planner {

/// Costs that no program of messages between devices can be below (switches that do additions can). Bytes into a device
/// or out of it, whichever are more; for a chip and a slice over all groups at once.
struct CollectiveBound {
  double device_bytes = 0;
  std::vector<double> bytes_by_chip;  // by number of the chip, up to the last one in a group
  double chip_bytes = 0;              // maximum of them
  double slice_bytes = 0;
  int64_t slices = 1;             // that one group spans
  std::optional<double> seconds;  // for these bytes over all links at once; nothing where a rate is not known
  std::string why_no_seconds;     // names the rate
};
void visit_fields(FieldsOf<CollectiveBound> auto& bound, const auto& visit) {
  visit("bytes_by_device", bound.device_bytes);
  visit("bytes_by_chip", bound.chip_bytes);
  visit("bytes_by_slice", bound.slice_bytes);
  visit("estimate_seconds", bound.seconds);
  visit("why_no_estimate", bound.why_no_seconds);
}

/// For groups of one size that placed_group() supports. If a group has k parts on different chips (or slices), each
/// part must receive the bytes that one device of a group of k devices must receive (received_bytes). All-reduce:
/// Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", 2009. `alike`: how many
/// groups like each of these a slice has.
CollectiveBound collective_bound(CollectiveOp op, double bytes, const Cluster& cluster,
                                 const std::vector<std::vector<int64_t>>& groups, int64_t alike = 1);

/// Positions in a group: (source, destination).
using PermutePairs = std::vector<std::pair<int64_t, int64_t>>;

/// Cost and bound of a permute in which the source of each pair sends its block of `block_bytes` to the destination, in
/// all groups at once, by price_messages. Throws InvalidArgument for positions outside the groups, positions that send
/// or receive twice, groups of unequal size, devices that are not in the cluster, and more than 2^22 messages.
struct PermuteCost {
  TransferPrice price;
  CollectiveBound bound;
};
PermuteCost permute_cost(double block_bytes, const PermutePairs& pairs, const Cluster& cluster,
                         const std::vector<std::vector<int64_t>>& groups,
                         const Efficiency& efficiency = ideal_efficiency());

/// Devices of each group of the cluster along some of its axes ("x", "y", "z"; "chip" where there is no torus;
/// "slice"), in the order of the names, the last fastest; devices of one chip are adjacent. `by_id`:
/// in the order of their ids. Throws InvalidArgument for other names and repeated ones.
std::vector<std::vector<int64_t>> groups_along(const Cluster& cluster, const std::vector<std::string>& axes,
                                               bool by_id = false);

}  // namespace artifex_devices::planner
