// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <optional>

#include "artifex_devices/cluster/cluster.h"
#include "artifex_devices/device/client.h"
#include "artifex_devices/planner/placed_copies.h"

namespace artifex_devices::bindings {

void bind_planner(pybind11::module_& module);
void bind_plan_collective(pybind11::module_& module);
void bind_reshard_picture(pybind11::module_& module);
void bind_calibration(pybind11::module_& module);

/// That the devices of a client are of; nullptr for those of a machine.
std::shared_ptr<Cluster> handle_of_cluster(const Client& client);

using ClusterOrNone = std::optional<std::shared_ptr<Cluster>>;

/// artifex_devices::cluster_for() for handles as Python has them.
inline std::shared_ptr<Cluster> cluster_handle_for(const ClusterOrNone& given, const Sharding& source,
                                                   const Sharding& destination) {
  return std::const_pointer_cast<Cluster>(cluster_for(given.value_or(nullptr), source, destination));
}

}  // namespace artifex_devices::bindings
