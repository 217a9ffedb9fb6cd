// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

namespace artifex_devices::bindings {

namespace py = pybind11;

/// What says something of devices, can be kept as bytes, and needs no world to be read.
void bind_device_assignment(py::module_& module);
void bind_device_topology(py::module_& module);
void bind_heap_profile(py::module_& module);

}  // namespace artifex_devices::bindings
