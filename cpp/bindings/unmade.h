// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

namespace artifex_devices::bindings {

namespace py = pybind11;

/// `Class.__new__(Class)` gives an object whose __init__ has not run: there is no C++ value in it. From here on whoever
/// asks for that value, of any class that the module has by now, gets a TypeError. pybind11 by itself hands out memory
/// that no constructor has seen.
void refuse_unmade(const py::module_& module);

}  // namespace artifex_devices::bindings
