// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "artifex_devices/sharding/named_sharding.h"
#include "pybind.h"

namespace artifex_devices::bindings {

namespace py = pybind11;

/// Fast paths for creating meshes, specs and NamedShardings from the same objects as before, and for their parts. Their
/// metaclass is fast_path_metaclass().
void add_mesh_fast_paths(py::object cls);
void add_spec_fast_paths(py::object cls, PyObject* unconstrained);
void add_named_sharding_fast_paths(py::object cls);

/// The Python object of a sharding. Cached for open worlds: their Arrays share it.
py::object sharding_object(const ShardingRef& sharding);

}  // namespace artifex_devices::bindings
