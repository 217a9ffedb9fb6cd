// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

namespace artifex_devices::bindings {

namespace py = pybind11;

// One function a room; module.cpp calls them, classes before the functions that use them.
void bind_topology(py::module_& module);
void bind_device(py::module_& module);
void bind_memory(py::module_& module);
void bind_device_list(py::module_& module);
void bind_client(py::module_& module);
void bind_partition(py::module_& module);
void bind_sharding(py::module_& module);
void bind_array(py::module_& module);
void bind_transfer(py::module_& module);
void bind_tree(py::module_& module);
void bind_assembly(py::module_& module);
void bind_cross_reshard(py::module_& module);
void bind_host_copy(py::module_& module);
void bind_dlpack(py::module_& module);
void bind_advice(py::module_& module);
void bind_accelerator_catalogue(py::module_& module);
void bind_layout(py::module_& module);
void bind_local(py::module_& module);
void bind_spec_algebra(py::module_& module);
void bind_collective(py::module_& module);
void bind_spmd(py::module_& module);
void bind_render(py::module_& module);
void bind_looks(py::module_& module);
void bind_config(py::module_& module);

}  // namespace artifex_devices::bindings
