// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/base/python_repr.h"

#include <fmt/format.h>

#include <utility>

namespace artifex_devices {

int decode_utf8(std::string_view text, uint32_t* point) noexcept {
  const auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<unsigned char>(text[i])); };
  const uint32_t lead = byte(0);
  const int length = lead < 0x80                   ? 1
                     : lead >= 0xC2 && lead < 0xE0 ? 2
                     : lead >= 0xE0 && lead < 0xF0 ? 3
                     : lead >= 0xF0 && lead < 0xF5 ? 4
                                                   : 0;
  if (length == 0 || static_cast<size_t>(length) > text.size()) return 0;
  *point = length == 1 ? lead : lead & (0xFFu >> (length + 1));
  for (int i = 1; i < length; ++i) {
    const uint32_t next = byte(static_cast<size_t>(i));
    if ((next & 0xC0u) != 0x80u) return 0;
    *point = *point << 6 | (next & 0x3Fu);
  }
  constexpr uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  return *point >= kSmallest[length] && *point <= 0x10FFFF ? length : 0;
}

namespace {

/// False for the characters that Python escapes: controls, separators other than the space, format characters,
/// surrogates and private use.
bool is_printable(uint32_t point) {
  constexpr std::pair<uint32_t, uint32_t> kHidden[] = {
      {0x00, 0x1F},     {0x7F, 0xA0},     {0xAD, 0xAD},     {0x600, 0x605},   {0x61C, 0x61C},   {0x6DD, 0x6DD},
      {0x70F, 0x70F},   {0x1680, 0x1680}, {0x180E, 0x180E}, {0x2000, 0x200F}, {0x2028, 0x202F}, {0x205F, 0x206F},
      {0x3000, 0x3000}, {0xD800, 0xF8FF}, {0xFEFF, 0xFEFF}, {0xFFF0, 0xFFFB}, {0xFFFE, 0xFFFF}, {0xE0000, 0x10FFFF}};
  for (const auto& [first, last] : kHidden) {
    if (point >= first && point <= last) return false;
  }
  return true;
}

/// Appends the text, escaped where it is not printable, and before `quote` and backslashes unless quote is '\0'.
void append_escaped(std::string& result, std::string_view text, char quote) {
  for (size_t at = 0; at < text.size();) {
    uint32_t point = 0;
    const int length = decode_utf8(text.substr(at), &point);
    if (length == 0) {  // not valid UTF-8: escape the byte as Python's surrogateescape does
      result += fmt::format("\\udc{:02x}", static_cast<unsigned char>(text[at++]));
      continue;
    }
    const std::string_view bytes = text.substr(at, static_cast<size_t>(length));
    at += bytes.size();
    if (quote != '\0' && (point == '\\' || point == static_cast<uint32_t>(quote))) {
      (result += '\\') += bytes;
    } else if (point == '\n' || point == '\r' || point == '\t') {
      result += point == '\n' ? "\\n" : point == '\r' ? "\\r" : "\\t";
    } else if (is_printable(point)) {
      result += bytes;
    } else {
      result += point < 0x100     ? fmt::format("\\x{:02x}", point)
                : point < 0x10000 ? fmt::format("\\u{:04x}", point)
                                  : fmt::format("\\U{:08x}", point);
    }
  }
}

}  // namespace

std::string python_repr(std::string_view text) {
  const char quote = text.find('\'') != text.npos && text.find('"') == text.npos ? '"' : '\'';
  std::string repr(1, quote);
  append_escaped(repr, text, quote);
  return repr += quote;
}

std::string printable(std::string_view text) {
  std::string result;
  append_escaped(result, text, '\0');
  return result;
}

}  // namespace artifex_devices
