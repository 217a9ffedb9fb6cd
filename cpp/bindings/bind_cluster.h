// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

namespace artifex_devices::bindings {

/// Clusters, and the orders of meshes over their devices.
void bind_cluster(pybind11::module_& module);
void bind_mesh_orders(pybind11::module_& module);

}  // namespace artifex_devices::bindings
