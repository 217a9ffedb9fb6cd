// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "artifex_devices/cluster/cluster.h"
#include "artifex_planner/cost/messages.h"
#include "artifex_planner/reshard/sequence.h"

namespace artifex_devices::planner {

/// Messages of a permute in a sequence, for price_messages; replicas send one message each where none keeps its own.
std::vector<DeviceMessage> permute_messages(const ReshardSequence& sequence, size_t step,
                                            const std::vector<int64_t>& devices);

/// Estimates one step of a sequence whose positions are placed on `devices` (ids by position). Groups that are boxes
/// use the formulas (the slowest group counts); for other groups, the messages of a ring in the order of the mesh
/// count.
TransferPrice price_step(const Cluster& cluster, const ReshardSequence& sequence, size_t step,
                         const std::vector<int64_t>& devices, const Efficiency& efficiency = ideal_efficiency());

/// Bytes of one step between slices. The group of a gather brings each shard into a slice once, and forwards it inside.
int64_t network_bytes(const Cluster& cluster, const ReshardSequence& sequence, size_t step,
                      const std::vector<int64_t>& devices);

}  // namespace artifex_devices::planner
