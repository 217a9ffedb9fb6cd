// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

#include <string>
#include <string_view>

namespace artifex_devices::bindings {

/// What a bound function was called with: positional arguments, then the values of `keywords` (a tuple of str, or
/// null).
struct CallArguments {
  PyObject* const* values;
  Py_ssize_t count;
  PyObject* keywords;
};

/// pybind11's text about arguments that no overload takes, in this library's words: for `Device.memory(3)`
/// "Device.memory: kind is of another type; expected str, got 3 (int); call it as Device.memory(kind: str)". All
/// arguments that do not suit are named. Empty if the text is about something else. Runs no code of the arguments but
/// __index__, whose errors count as "does not suit".
std::string argument_error_text(std::string_view operation, std::string_view text, const CallArguments& call);

/// The same for a value that a bound function could not take for what it needs, where pybind11 speaks of casts: "...: a
/// value is of <class 'object'>; ...". Empty if the text is about something else.
std::string value_error_text(std::string_view operation, std::string_view text);

}  // namespace artifex_devices::bindings
