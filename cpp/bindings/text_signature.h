// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace artifex_devices::bindings {

/// Splits a part of a signature at `mark` where it is outside of brackets and quotes.
std::vector<std::string_view> split_outside_brackets(std::string_view text, std::string_view mark);

/// A docstring of pybind11's, "name(self: T, x: int = 1) -> T\n...", after the text signature "name(self,
/// x=1)\n--\n\n", which CPython cuts off `__doc__` and `inspect.signature` reads. `self` replaces the parameter of that
/// name: CPython takes "$self" off the signature of a bound method. A docstring without a signature stays as it is.
std::string with_text_signature(std::string_view name, std::string_view doc, std::string_view self);

}  // namespace artifex_devices::bindings
