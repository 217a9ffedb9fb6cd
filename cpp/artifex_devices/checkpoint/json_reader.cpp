// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/checkpoint/json_reader.h"

#include <limits>

#include "artifex_devices/base/interrupt.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/base/wire.h"

namespace artifex_devices {
namespace {

constexpr uint32_t kReplacement = 0xFFFD;

void append_utf8(std::string& text, uint32_t code) {
  if (code < 0x80) {
    text += static_cast<char>(code);
  } else if (code < 0x800) {
    text += static_cast<char>(0xC0 | (code >> 6));
    text += static_cast<char>(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    text += static_cast<char>(0xE0 | (code >> 12));
    text += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
    text += static_cast<char>(0x80 | (code & 0x3F));
  } else {
    text += static_cast<char>(0xF0 | (code >> 18));
    text += static_cast<char>(0x80 | ((code >> 12) & 0x3F));
    text += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
    text += static_cast<char>(0x80 | (code & 0x3F));
  }
}

}  // namespace

void JsonReader::fail(std::string_view expected) const {
  throw_error("{}: the JSON is not valid at byte {}: expected {}", what_, position_, expected);
}

char JsonReader::peek() {
  const auto is_blank = [](char sign) { return sign == ' ' || sign == '\n' || sign == '\r' || sign == '\t'; };
  while (position_ < text_.size() && is_blank(text_[position_])) ++position_;
  return position_ < text_.size() ? text_[position_] : '\0';
}

void JsonReader::expect(char sign) {
  if (position_ >= text_.size() || peek() != sign) fail(fmt::format("'{}'", sign));
  ++position_;
}

void JsonReader::end() {
  peek();
  if (position_ < text_.size()) fail("the end");
}

bool JsonReader::next_member(bool& first, std::string& name) {
  if (peek() == '}') {
    ++position_;
    return false;
  }
  constexpr size_t kMembersPerCheck = 1 << 14;
  if (++members_ % kMembersPerCheck == 0) check_interrupt();
  if (!first) expect(',');
  first = false;
  name = string();
  expect(':');
  return true;
}

bool JsonReader::next_item(bool& first) {
  if (peek() == ']') {
    ++position_;
    return false;
  }
  if (!first) expect(',');
  first = false;
  return true;
}

uint32_t JsonReader::code_unit() {
  uint32_t code = 0;
  for (int i = 0; i < 4; ++i, ++position_) {
    const char digit = position_ < text_.size() ? text_[position_] : '\0';
    uint32_t value = 0;
    if (digit >= '0' && digit <= '9') {
      value = static_cast<uint32_t>(digit - '0');
    } else if (digit >= 'a' && digit <= 'f') {
      value = static_cast<uint32_t>(digit - 'a') + 10;
    } else if (digit >= 'A' && digit <= 'F') {
      value = static_cast<uint32_t>(digit - 'A') + 10;
    } else {
      fail("four hexadecimal digits");
    }
    code = code * 16 + value;
  }
  return code;
}

std::string JsonReader::string() {
  expect('"');
  std::string result;
  bool is_ascii = true;
  for (;;) {
    const size_t begin = position_;
    unsigned char sign = 0;
    for (; position_ < text_.size(); ++position_) {
      sign = static_cast<unsigned char>(text_[position_]);
      if (sign == '"' || sign == '\\' || sign < 0x20) break;
      is_ascii &= sign < 0x80;
    }
    result.append(text_, begin, position_ - begin);
    if (position_ >= text_.size() || sign < 0x20) fail("the end of a string");
    ++position_;
    if (sign == '"') break;
    append_escape(result);
  }
  if (!is_ascii && !is_utf8(result)) fail("UTF-8");
  return result;
}

void JsonReader::append_escape(std::string& result) {
  const char escape = position_ < text_.size() ? text_[position_++] : '\0';
  if (escape == '"' || escape == '\\') {
    result += escape;
    return;
  }
  constexpr std::string_view kEscapes = "/bfnrt";
  constexpr std::string_view kMeanings = "/\b\f\n\r\t";
  if (const size_t which = kEscapes.find(escape); which != std::string_view::npos) {
    result += kMeanings[which];
    return;
  }
  if (escape != 'u') fail("an escape sequence");
  uint32_t code = code_unit();
  if (code >= 0xD800 && code < 0xDC00) {
    const size_t begin = position_;
    uint32_t low = 0;
    if (text_.substr(position_, 2) == "\\u") {
      position_ += 2;
      low = code_unit();
    }
    if (low >= 0xDC00 && low < 0xE000) {
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    } else {
      if (!allows_lone_surrogates_) fail("the second half of a surrogate pair");
      position_ = begin;
      code = kReplacement;
    }
  } else if (code >= 0xDC00 && code < 0xE000) {
    if (!allows_lone_surrogates_) fail("the first half of a surrogate pair");
    code = kReplacement;
  }
  append_utf8(result, code);
}

int64_t JsonReader::integer() {
  const char first = peek();
  if (first < '0' || first > '9') fail("a number from 0 to 2**63 - 1");
  int64_t value = 0;
  const size_t begin = position_;
  for (; position_ < text_.size() && text_[position_] >= '0' && text_[position_] <= '9'; ++position_) {
    const int64_t digit = text_[position_] - '0';
    if (value > (std::numeric_limits<int64_t>::max() - digit) / 10) fail("a number from 0 to 2**63 - 1");
    value = value * 10 + digit;
  }
  const char next = position_ < text_.size() ? text_[position_] : '\0';
  if (next == '.' || next == 'e' || next == 'E' || (first == '0' && position_ - begin > 1)) fail("an integer");
  return value;
}

std::string_view JsonReader::raw() {
  peek();
  const size_t begin = position_;
  allows_lone_surrogates_ = true;
  skip();
  allows_lone_surrogates_ = false;
  return text_.substr(begin, position_ - begin);
}

void JsonReader::skip_word() {
  const size_t begin = position_;
  constexpr std::string_view kSigns = "+-.0123456789Eabcdefghijklmnopqrstuvwxyz";
  while (position_ < text_.size() && kSigns.find(text_[position_]) != std::string_view::npos) ++position_;
  if (position_ == begin) fail("a value");
}

void JsonReader::skip(int depth) {
  if (depth >= kMaxDepth) fail(fmt::format("at most {} levels of nesting", kMaxDepth));
  const char sign = peek();
  bool first = true;
  if (sign == '"') {
    string();
  } else if (sign == '{') {
    begin_object();
    for (std::string name; next_member(first, name);) skip(depth + 1);
  } else if (sign == '[') {
    begin_list();
    while (next_item(first)) skip(depth + 1);
  } else {
    skip_word();
  }
}

std::string json_string(std::string_view text) {
  std::string result = "\"";
  for (const char sign : text) {
    if (sign == '"' || sign == '\\') {
      result += '\\';
      result += sign;
    } else if (static_cast<unsigned char>(sign) < 0x20) {
      result += fmt::format("\\u{:04x}", static_cast<unsigned>(sign));
    } else {
      result += sign;
    }
  }
  return result + '"';
}

}  // namespace artifex_devices
