// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

namespace artifex_devices::bindings {

namespace py = pybind11;

/// Before shardings, which speak of meshes.
void bind_mesh(py::module_& module);

}  // namespace artifex_devices::bindings
