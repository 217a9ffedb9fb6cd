// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

namespace artifex_devices::bindings {

namespace py = pybind11;

/// Keeps C++ objects whole where there is no memory for their Python object. pybind11 (3.1) marks the Python object of
/// a shared C++ one as its owner before it enters it into its table, and where that throws it destroys the C++ object,
/// which others still hold. Called once, when all classes of `module` are there; casts take an indirect call more.
///
/// Where __init__ makes the object, an error of that table ends the process, unless the function given to py::init
/// returns the holder (std::unique_ptr, std::shared_ptr) and not the value: so all of them do.
void guard_casts(const py::module_& module);

}  // namespace artifex_devices::bindings
