// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "artifex_devices/cluster/cluster.h"
#include "artifex_devices/sharding/sharding.h"
#include "artifex_planner/cost/messages.h"
#include "artifex_planner/reshard/direct_copies.h"

namespace artifex_devices::planner {

// Both ends of a planned reshard between two shardings, and the direct copies between them.

inline constexpr const char* kPlanReshard = "plan_reshard";  // begins the errors of reshard plans
inline constexpr double kMostCopies = 1 << 22;               // planned one by one: seconds, and hundreds of MB

/// The cluster that the devices of a client belong to; null for devices of a machine.
ClusterRef cluster_of(const Client& client);
/// Network of the devices of this device's client: their cluster, or the links of GPUs in the catalogue; null if
/// neither is known.
ClusterRef network_of(const Device& device);

/// The cluster to plan on: `given` if it is set, else the cluster whose devices the shardings have; null for devices of
/// this process. Throws InvalidArgument where the two ends disagree.
ClusterRef cluster_for(const ClusterRef& given, const Sharding& source, const Sharding& destination);

/// Ids of the devices by position; for an abstract sharding the positions themselves.
std::vector<int64_t> device_ids(const Sharding& sharding);

/// Throws InvalidArgument where the sharding has more devices than the cluster. Null: any number is fine.
void check_size(const Sharding& sharding, const Cluster* cluster);

/// Direct copies with the two ends that they join.
struct PlacedCopies {
  PlacedEnd source;
  PlacedEnd destination;
  DirectCopies direct;
};

/// Estimated number of direct copies.
double copies_between(const Sharding& from, const Sharding& to, const Dims& shape, const Cluster* cluster);

/// Plans the direct copies one by one, as transfers within this process or on a cluster. Throws InvalidArgument where
/// there would be more than `most` copies. Example: (8,) from P('x') to P() over 4 devices in 4 memories is 16 copies.
PlacedCopies placed_copies(const Sharding& from, const Sharding& to, const Dims& shape, int64_t itemsize,
                           const Cluster* cluster, double most = kMostCopies);

/// Bytes between devices in direct copies, for a picture; or why there are too many copies for one.
struct DrawnCopies {
  std::vector<DeviceMessage> messages;
  std::string why_none;
};
/// `bytes_by_link` is for the reason.
DrawnCopies drawn_copies(const Sharding& from, const Sharding& to, const Dims& shape, int64_t itemsize,
                         const Cluster* cluster, const std::vector<std::pair<std::string, int64_t>>& bytes_by_link);

}  // namespace artifex_devices::planner
