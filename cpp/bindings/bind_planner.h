// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

#include <memory>

#include "artifex_devices/cluster/cluster.h"
#include "artifex_devices/device/client.h"

namespace artifex_devices::bindings {

void bind_planner(pybind11::module_& module);
void bind_plan_collective(pybind11::module_& module);
void bind_reshard_picture(pybind11::module_& module);
void bind_calibration(pybind11::module_& module);

/// That the devices of a client are of; nullptr for those of a machine.
std::shared_ptr<Cluster> handle_of_cluster(const Client& client);

}  // namespace artifex_devices::bindings
