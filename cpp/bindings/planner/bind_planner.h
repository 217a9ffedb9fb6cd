// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <optional>
#include <vector>

#include "artifex_devices/cluster/cluster.h"
#include "artifex_planner/reshard/placed_copies.h"
#include "calls.h"

namespace artifex_devices::planner::bindings {

void bind_advice(pybind11::module_& module);
void bind_reshard_picture(pybind11::module_& module);
void bind_reshard(pybind11::module_& module);
void bind_step(pybind11::module_& module);
void bind_training(pybind11::module_& module);
void bind_failures(pybind11::module_& module);
void bind_profile_fit(pybind11::module_& module);

void bind_calibration(pybind11::module_& module);

using ClusterOrNone = std::optional<std::shared_ptr<Cluster>>;

}  // namespace artifex_devices::planner::bindings
