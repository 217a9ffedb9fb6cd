// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

namespace artifex_devices::bindings {

namespace py = pybind11;

/// Makes a Python object that there is no memory for an error. pybind11 (3.1) writes into what a class's tp_alloc gives
/// without a look whether it gave anything, in casts and in `Class(...)`: the process ends with SIGSEGV. From here on
/// casts to the classes that `module` has by now throw std::bad_alloc, and calls of these classes raise MemoryError.
void check_instances(const py::module_& module);

}  // namespace artifex_devices::bindings
