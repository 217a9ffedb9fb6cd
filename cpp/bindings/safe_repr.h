// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

#include <string>

namespace artifex_devices::bindings {

namespace py = pybind11;

/// The repr of an object for messages; of more than 500 characters only the first 400 and the last 80. If the repr
/// raises, "<Batch, whose repr raised ValueError>" replaces it, so that the message is not lost; KeyboardInterrupt and
/// others that are not an Exception pass.
std::string safe_repr(py::handle object);

void bind_safe_repr(py::module_& module);

}  // namespace artifex_devices::bindings
