// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "artifex_devices/base/error.h"
#include "pybind.h"

namespace artifex_devices::bindings {

namespace py = pybind11;

/// A number that does not fit its dtype.
class OverflowError : public Error {  // OverflowError
 public:
  using Error::Error;
};

/// Creates the exception classes and registers the translator of core errors.
[[gnu::cold]] void bind_errors(py::module_& module);

/// Sets the Python error of the C++ exception being handled. The exception that a signal handler raised stays set.
void set_error_of_exception() noexcept;

/// "ResourceExhaustedError: device_put: ...": class and text as Python shows them. `signal` is the class of the
/// exception that a signal handler raised, for Interrupted; null for KeyboardInterrupt.
std::string text_of_error(const std::exception& error, PyObject* signal);

/// Rethrows the core error being handled as its Python exception, with `prefix` before its text unless it begins with
/// it. Call it in a catch block; exceptions other than `Error` pass unchanged.
[[noreturn]] void rethrow_with_context(const std::string& prefix);

}  // namespace artifex_devices::bindings
