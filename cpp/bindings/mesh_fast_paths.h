// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

#include "artifex_devices/sharding/named_sharding.h"

namespace artifex_devices::bindings {

namespace py = pybind11;

/// Short cuts for making meshes, specs and NamedShardings again from the very objects that made one before, and for
/// what they are made of. Their metaclass is fast_path_metaclass().
void add_mesh_fast_paths(py::object cls);
void add_spec_fast_paths(py::object cls, PyObject* unconstrained);
void add_named_sharding_fast_paths(py::object cls);

/// The Python object of a sharding; kept for those of open worlds, so that it is not made anew for each Array.
py::object sharding_object(const ShardingRef& sharding);

}  // namespace artifex_devices::bindings
