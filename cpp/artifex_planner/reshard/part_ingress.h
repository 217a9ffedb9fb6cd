// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "artifex_devices/cluster/cluster.h"
#include "artifex_devices/partition/shard_domains.h"

namespace artifex_devices::planner {

/// Parts of a cluster that hold several devices.
enum class ClusterPart : uint8_t { kChip, kHost, kSlice };

/// The bytes that each chip, host or slice that has any of the devices must receive at least (group_ingress_bytes), in
/// the order of their first devices. Devices are ids by position. Computed by arithmetic for each part if the mesh
/// consists of full slices in order of id, else from the parts that each device holds.
std::vector<int64_t> part_ingress_bytes(const ShardDomains& source, const std::vector<int64_t>& source_devices,
                                        const ShardDomains& destination,
                                        const std::vector<int64_t>& destination_devices, const Cluster& cluster,
                                        ClusterPart part, int64_t itemsize);

/// The numbers of those parts, in the same order.
std::vector<int64_t> part_numbers(const std::vector<int64_t>& source_devices,
                                  const std::vector<int64_t>& destination_devices, const Cluster& cluster,
                                  ClusterPart part);

}  // namespace artifex_devices::planner
