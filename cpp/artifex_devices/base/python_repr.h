// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace artifex_devices {

/// Decodes the first code point of a UTF-8 text that is not empty. Returns its length in bytes, or 0 when the bytes are
/// not valid UTF-8.
int decode_utf8(std::string_view text, uint32_t* point) noexcept;

/// Python's repr of a str: "it's" in double quotes, line ends and unprintable characters escaped.
std::string python_repr(std::string_view text);

/// A text of a file or path for a message, without quotes: what a terminal would obey instead of showing is escaped as
/// python_repr does it. Example: "a\x1b[2J" becomes "a\\x1b[2J".
std::string printable(std::string_view text);

}  // namespace artifex_devices
