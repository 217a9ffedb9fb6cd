// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "artifex_devices/cluster/cluster.h"
#include "artifex_devices/planner/direct_way.h"
#include "artifex_devices/sharding/sharding.h"
#include "gil.h"

namespace artifex_devices::bindings {

// Where both ends of a reshard that is planned lie, and the direct copies between them.

inline constexpr const char* kPlanReshard = "plan_reshard";  // of all errors about these
inline constexpr double kMostCopies = 1 << 22;               // seconds, and hundreds of MB

using ClusterOrNone = std::optional<std::shared_ptr<Cluster>>;

/// The one that is given, or that the devices are of; nullptr for devices of this process.
std::shared_ptr<Cluster> cluster_for(const ClusterOrNone& given, const Sharding& source, const Sharding& destination);

/// Runs what may take long: other threads of Python go on, and Ctrl-C ends it.
template <class F>
auto without_gil(F work) {
  const ReleaseGil release;
  return work();
}

/// Ids by position; of an abstract sharding the positions themselves.
std::vector<int64_t> devices_of(const Sharding& sharding);

/// That a cluster, if there is one, has as many devices as the mesh. Throws InvalidArgument.
void check_size(const Sharding& sharding, const Cluster* cluster);

/// Direct copies, with the ends that they join.
struct PlacedWay {
  PlacedEnd source;
  PlacedEnd destination;
  DirectWay way;
};

/// About how many direct copies there would be.
double copies_between(const Sharding& from, const Sharding& to, const Dims& shape, const Cluster* cluster);

/// `most`: copies that are planned one by one; where there would be more it throws InvalidArgument.
PlacedWay placed_way(const Sharding& from, const Sharding& to, const Dims& shape, int64_t itemsize,
                     const Cluster* cluster, double most);

}  // namespace artifex_devices::bindings
