// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

namespace artifex_devices::bindings {

namespace py = pybind11;

// Corrections of pybind11 (3.1), applied once to all classes and functions that the module has at that time.

/// `Class.__new__(Class)` returns an object without a C++ value, as its __init__ has not run. Using its value now
/// raises TypeError, where pybind11 would return uninitialized memory.
void reject_uninitialized(const py::module_& module);

/// Turns the functions that pickles refer to into plain ones, pickled as `artifex_devices._core` and their name.
/// pybind11 pickles its functions as a call of eval, which an unpickler with an allow-list refuses. Call it last.
void install_pickle_functions(const py::module_& module);

}  // namespace artifex_devices::bindings
