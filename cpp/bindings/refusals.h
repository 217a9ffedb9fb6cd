// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

namespace artifex_devices::bindings {

namespace py = pybind11;

/// Arguments that a bound function or class cannot take are a TypeError in this library's words: operation, argument,
/// what was expected and what came. pybind11's own text lists the C++ side's signatures and the repr of every argument.
/// Holds for all that the module has by now; classes without a constructor say where their objects come from.
void explain_refusals(const py::module_& module);

}  // namespace artifex_devices::bindings
