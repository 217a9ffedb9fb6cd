// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "artifex_devices/base/id.h"
#include "pybind.h"

// Ids become integers by name. pybind11 would compile a conversion of one, and fail when it runs.
template <class Tag>
class pybind11::detail::type_caster<artifex_devices::Id<Tag>>;

namespace artifex_devices::bindings {

namespace py = pybind11;

// One function for each file bind_*.cpp, compiled for size, because it runs once. module.cpp calls them, classes before
// the functions that use them.
[[gnu::cold]] void bind_accelerator_catalogue(py::module_& module);
[[gnu::cold]] void bind_accelerators(py::module_& module);
[[gnu::cold]] void bind_array(py::module_& module);
[[gnu::cold]] void bind_assembly(py::module_& module);
[[gnu::cold]] void bind_charts(py::module_& module);
[[gnu::cold]] void bind_caller_line(py::module_& module);
[[gnu::cold]] void bind_checkpoint(py::module_& module);
[[gnu::cold]] void bind_conversion(py::module_& module);
[[gnu::cold]] void bind_client(py::module_& module);
[[gnu::cold]] void bind_cluster(py::module_& module);
[[gnu::cold]] void bind_collective(py::module_& module);
[[gnu::cold]] void bind_reduction(py::module_& module);
[[gnu::cold]] void bind_transport(py::module_& module);
[[gnu::cold]] void bind_processes(py::module_& module);  // after the classes of topology and clients
[[gnu::cold]] void bind_data(py::module_& module);
[[gnu::cold]] void bind_device(py::module_& module);
[[gnu::cold]] void bind_device_assignment(py::module_& module);
[[gnu::cold]] void bind_device_list(py::module_& module);
[[gnu::cold]] void bind_device_topology(py::module_& module);
[[gnu::cold]] void bind_dlpack(py::module_& module);
[[gnu::cold]] void bind_exact_sum(py::module_& module);
[[gnu::cold]] void bind_flight(py::module_& module);
[[gnu::cold]] void bind_hlo(py::module_& module);
[[gnu::cold]] void bind_trace(py::module_& module);
[[gnu::cold]] void bind_memory(py::module_& module);
[[gnu::cold]] void bind_memory_layout(py::module_& module);
[[gnu::cold]] void bind_mesh(py::module_& module);
[[gnu::cold]] void bind_partition(py::module_& module);
[[gnu::cold]] void bind_render(py::module_& module);
[[gnu::cold]] void bind_repr(py::module_& module);
[[gnu::cold]] void bind_roofline(py::module_& module);
[[gnu::cold]] void bind_sharding(py::module_& module);
[[gnu::cold]] void bind_shards(py::module_& module);
[[gnu::cold]] void bind_shared_channels(py::module_& module);
[[gnu::cold]] void bind_meeting(py::module_& module);
[[gnu::cold]] void bind_object_identity(py::module_& module);
[[gnu::cold]] void bind_spmd(py::module_& module);
[[gnu::cold]] void bind_topology(py::module_& module);
[[gnu::cold]] void bind_spec_algebra(py::module_& module);
[[gnu::cold]] void bind_mesh_orders(py::module_& module);
[[gnu::cold]] void bind_transfer(py::module_& module);
[[gnu::cold]] void bind_transfer_recording(py::module_& module);
[[gnu::cold]] void bind_tree(py::module_& module);

/// Sets the members that all public classes share. Call it after all classes are bound.
void finish_classes(const py::module_& module);

}  // namespace artifex_devices::bindings
