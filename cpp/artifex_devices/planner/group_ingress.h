// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "artifex_devices/partition/shard_domains.h"

namespace artifex_devices {

/// The bytes that each group of positions (a host, a slice, a memory) must receive at least: of the elements that its
/// devices hold afterwards, those that none of them holds before, each counted once. Groups are numbered from 0; one
/// number a position. A group whose positions are all its own is ingress_bytes() of partition/reshard_plan.h.
/// Throws InvalidArgument for shapes that differ, lists that are not one a position, and numbers outside the groups.
/// Example: (8,) of 4-byte items from 2 parts on positions of groups {0, 1} to replicas there: {16, 16}.
std::vector<int64_t> group_ingress_bytes(const ShardDomains& source, const std::vector<int64_t>& source_groups,
                                         const ShardDomains& destination,
                                         const std::vector<int64_t>& destination_groups, int64_t groups,
                                         int64_t itemsize);

}  // namespace artifex_devices
