// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

#include "artifex_devices/sharding/named_sharding.h"

namespace artifex_devices::bindings {

namespace py = pybind11;

/// Short cuts for making meshes, specs and NamedShardings again from the very objects that made one before, and for
/// what they are made of. Their metaclass is short_cut_metaclass().
void shorten_mesh(py::object cls);
void shorten_partition_spec(py::object cls, PyObject* unconstrained);
void shorten_named_sharding(py::object cls);

/// The Python object of a sharding; kept for those of open worlds, so that it is not made anew for each Array.
py::object sharding_object(const ShardingRef& sharding);

}  // namespace artifex_devices::bindings
