// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

namespace artifex_devices::bindings {

/// Clusters, and how the axes of a mesh lie on a torus.
void bind_cluster(pybind11::module_& module);
void bind_torus(pybind11::module_& module);

}  // namespace artifex_devices::bindings
