// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "pybind.h"

namespace artifex_devices::bindings {

namespace py = pybind11;

/// The repr of an object for messages; of more than 500 characters only the first 400 and the last 80. If the repr
/// raises, "<Batch, whose repr raised ValueError>" replaces it, because the message must not be lost; KeyboardInterrupt
/// and others that are not an Exception pass.
std::string safe_repr(py::handle object);

/// The text of a str; a lone surrogate, which has no UTF-8, is escaped by its number.
std::string utf8_of(py::handle text);

/// A str of text that is not UTF-8 in all cases, such as a path or a name from a library.
py::str text_of_bytes(std::string_view bytes);
/// Returns None if the text is empty.
py::object text_or_none(std::string_view bytes);

[[gnu::cold]] void bind_safe_repr(py::module_& module);

}  // namespace artifex_devices::bindings
