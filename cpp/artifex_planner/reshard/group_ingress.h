// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "artifex_devices/partition/shard_domains.h"
#include "artifex_planner/cost/position_ranges.h"

namespace artifex_devices::planner {

/// Returns the bytes that each group of positions (a host, a slice, a memory) must receive at least: the elements that
/// its devices hold afterwards but none of them held before, each counted once. Groups are numbered from 0, one number
/// for each position. With one position in each group it equals ingress_bytes() of partition/reshard_plan.h. Throws
/// InvalidArgument for shapes that differ, lists that are not one number for each position, and numbers outside the
/// groups. Example: (8,) of 4-byte items from 2 parts on positions of groups {0, 1} to replicas there: {16, 16}.
std::vector<int64_t> group_ingress_bytes(const ShardDomains& source, const std::vector<int64_t>& source_groups,
                                         const ShardDomains& destination,
                                         const std::vector<int64_t>& destination_groups, int64_t groups,
                                         int64_t itemsize);

/// The same for groups of positions that begin at each of first_positions(inside) and extend over the ranges `inside`,
/// with the same devices at both ends. Such a group has a box of tiles, so the time depends on the number of groups and
/// runs of tiles, not on the number of tiles. Returns nothing if the ranges are not digits of both grids. Example: 2^20
/// devices in hosts of {2, 1}, {2, 16}: 2^18 groups.
std::optional<std::vector<int64_t>> group_ingress_bytes(const ShardDomains& source, const ShardDomains& destination,
                                                        const std::vector<PositionRange>& inside, int64_t itemsize);

}  // namespace artifex_devices::planner
