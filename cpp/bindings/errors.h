// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

#include <string>

#include "artifex_devices/base/error.h"

namespace artifex_devices::bindings {

namespace py = pybind11;

/// Makes the exception classes and registers the one translator of core errors.
void bind_errors(py::module_& module);

/// Rethrows the core error that is being handled as its Python exception, its text between `before` and `after`.
/// To be called in a catch block; anything but an `Error` goes on unchanged.
[[noreturn]] void rethrow_with_context(const std::string& before);

}  // namespace artifex_devices::bindings
