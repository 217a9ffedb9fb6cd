// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <optional>
#include <vector>

#include "artifex_devices/cluster/cluster.h"
#include "artifex_planner/reshard/placed_copies.h"
#include "artifex_planner/training/efficiency.h"
#include "calls.h"

namespace artifex_devices::planner::bindings {

void bind_advice(pybind11::module_& module);
void bind_reshard_picture(pybind11::module_& module);
void bind_reshard(pybind11::module_& module);
void bind_step(pybind11::module_& module);
void bind_training(pybind11::module_& module);
void bind_profile_fit(pybind11::module_& module);

void bind_calibration(pybind11::module_& module);

/// (number, source) of the fitted factors, by name.
pybind11::dict factors_dict(const Efficiency& efficiency, const std::vector<Factor>& fitted);

using ClusterOrNone = std::optional<std::shared_ptr<Cluster>>;

/// The arguments of artifex_devices.planner.Estimate.
inline pybind11::tuple estimate_arguments(const TransferCost& price) {
  return pybind11::make_tuple(price.latency, price.transfer, std::string(price.algorithm), std::string(price.limit));
}

}  // namespace artifex_devices::planner::bindings
