// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

#include <string>
#include <string_view>

namespace artifex_devices::bindings {

/// Arguments of a call: the positional ones, then the values of `keywords` (a tuple of str, or null).
struct CallArguments {
  PyObject* const* values;
  Py_ssize_t count;
  PyObject* keywords;
};

/// Rewrites pybind11's error about arguments that no overload takes: for `Device.memory(3)`
/// "Device.memory: kind is of another type; expected str, got 3 (int); call it as Device.memory(kind: str)". Names
/// every argument that does not fit. Empty for other texts. Of the arguments' own code it runs only __index__, whose
/// errors count as "does not fit".
std::string argument_error_text(std::string_view operation, std::string_view text, const CallArguments& call);

/// Rewrites pybind11's error about a value that could not be cast: "...: a value has the type <class 'object'>; ...".
/// Empty for other texts.
std::string value_error_text(std::string_view operation, std::string_view text);

}  // namespace artifex_devices::bindings
