// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <optional>

#include "artifex_devices/cluster/cluster.h"
#include "artifex_devices/device/client.h"
#include "artifex_planner/reshard/placed_copies.h"
#include "artifex_planner/training/model.h"
#include "calls.h"

namespace artifex_devices::planner::bindings {

void bind_advice(pybind11::module_& module);
void bind_reshard_picture(pybind11::module_& module);
void bind_reshard(pybind11::module_& module);
void bind_step(pybind11::module_& module);
void bind_training(pybind11::module_& module);
void bind_transformer_shape(pybind11::module_& module);
void bind_profile_fit(pybind11::module_& module);
void bind_training_fit(pybind11::module_& module);

/// The fields of models.TransformerShape. Not checked: `check_shape` does.
TransformerShape shape_from_python(const pybind11::dict& from);

void bind_calibration(pybind11::module_& module);

/// The cluster that the devices of a client belong to; nullptr for those of a machine.
std::shared_ptr<Cluster> handle_of_cluster(const Client& client);

using ClusterOrNone = std::optional<std::shared_ptr<Cluster>>;

/// artifex_devices::cluster_for() for handles as Python has them.
inline std::shared_ptr<Cluster> cluster_handle_for(const ClusterOrNone& given, const Sharding& source,
                                                   const Sharding& destination) {
  return std::const_pointer_cast<Cluster>(cluster_for(given.value_or(nullptr), source, destination));
}

/// The arguments of artifex_devices.planner.Estimate.
template <class Price>
pybind11::tuple estimate_arguments(const Price& price) {
  return pybind11::make_tuple(price.latency, price.transfer, std::string(price.algorithm), std::string(price.limit));
}

}  // namespace artifex_devices::planner::bindings
