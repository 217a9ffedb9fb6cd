// SPDX-License-Identifier: Apache-2.0
// Scans of HLO and MLIR text: brackets, quotes, lists and attributes. None recurses, each is linear in its text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace artifex_devices::hlo {

inline constexpr size_t kNone = std::string_view::npos;
inline constexpr int64_t kLargestNumber = int64_t{1} << 62;

bool is_space(char sign) noexcept;
bool is_digit(char sign) noexcept;
/// Whether a sign may be part of a name: letters, digits and `_-.$:@`.
bool is_name_sign(char sign) noexcept;

std::string_view trimmed(std::string_view text) noexcept;

/// The text behind a byte order mark, blank lines and lines that begin with `//` or `#`, such as `#loc1 = ...` of MLIR.
std::string_view behind_comments(std::string_view text) noexcept;

/// Position behind the bracket that closes the one at `open`, or kNone where the text ends before it. Brackets in
/// quotes do not count: end_of_brackets("(a[1], \")\") b", 0) is 12.
size_t end_of_brackets(std::string_view text, size_t open) noexcept;

/// Position behind the quote that closes the one at `open`, or kNone.
size_t end_of_quotes(std::string_view text, size_t open) noexcept;

/// The parts of a list between commas outside brackets and quotes, without blanks and `/*comments*/` around them.
std::vector<std::string_view> split_list(std::string_view text);

/// The text behind `key=` at the top level of "a=1, key={b=2}, c=3", up to the end of the text, or nothing.
std::optional<std::string_view> rest_of_attribute(std::string_view attributes, std::string_view key) noexcept;

/// As rest_of_attribute, up to the next comma: "{b=2}".
std::optional<std::string_view> attribute(std::string_view attributes, std::string_view key) noexcept;

/// The text between the first pair of brackets, or all of it where it does not begin with one: "b=2" of "{b=2}".
std::string_view inside_brackets(std::string_view text) noexcept;

/// The non-negative number that a text begins with, or nothing where there is none or it exceeds 2^62.
std::optional<int64_t> leading_number(std::string_view text) noexcept;

/// All numbers of a text, in order, each of at most 2^62; `most` at most. Signs are ignored.
std::vector<int64_t> numbers_in(std::string_view text, size_t most);

/// A quoted text without its quotes and escapes: `\"`, `\\`, `\'`, `\n`, `\t` and octal `\303`.
std::string unquoted(std::string_view text);

}  // namespace artifex_devices::hlo
