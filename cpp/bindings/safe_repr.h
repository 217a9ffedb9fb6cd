// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

#include <string>

namespace artifex_devices::bindings {

namespace py = pybind11;

/// An object as messages tell it: its repr; of more than 500 characters, the first 400 and the last 80. A repr is the
/// caller's code. Where it raises, "<Batch, whose repr raised ValueError>" stands for it, so that the message is not
/// lost; KeyboardInterrupt and whatever else is no Exception passes.
std::string safe_repr(py::handle object);

void bind_safe_repr(py::module_& module);

}  // namespace artifex_devices::bindings
