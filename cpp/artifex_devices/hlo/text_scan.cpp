// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/hlo/text_scan.h"

namespace artifex_devices::hlo {
namespace {

/// Position of the first comma outside brackets and quotes from `start` on, or the size of the text.
size_t end_of_item(std::string_view text, size_t start) noexcept {
  size_t at = start;
  while (at < text.size() && text[at] != ',') {
    const char sign = text[at];
    size_t next = at + 1;
    if (sign == '"') {
      next = end_of_quotes(text, at);
    } else if (sign == '(' || sign == '[' || sign == '{') {
      next = end_of_brackets(text, at);
    } else if (sign == '/' && text.substr(at, 2) == "/*") {
      next = text.find("*/", at + 2);
      if (next != kNone) next += 2;
    }
    if (next == kNone) return text.size();
    at = next;
  }
  return at;
}

std::string_view without_comments(std::string_view text) noexcept {
  text = trimmed(text);
  while (text.starts_with("/*")) {
    const size_t end = text.find("*/", 2);
    if (end == kNone) return {};
    text = trimmed(text.substr(end + 2));
  }
  return text;
}

}  // namespace

bool is_space(char sign) noexcept { return sign == ' ' || sign == '\t' || sign == '\n' || sign == '\r'; }

bool is_digit(char sign) noexcept { return sign >= '0' && sign <= '9'; }

bool is_name_sign(char sign) noexcept {
  return is_digit(sign) || (sign >= 'a' && sign <= 'z') || (sign >= 'A' && sign <= 'Z') || sign == '_' || sign == '-' ||
         sign == '.' || sign == '$' || sign == ':' || sign == '@';
}

std::string_view trimmed(std::string_view text) noexcept {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

size_t end_of_quotes(std::string_view text, size_t open) noexcept {
  for (size_t at = open + 1; at < text.size(); ++at) {
    if (text[at] == '\\') {
      ++at;
    } else if (text[at] == '"') {
      return at + 1;
    }
  }
  return kNone;
}

std::string_view behind_comments(std::string_view text) noexcept {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  while (true) {
    while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
    if (!text.starts_with("//") && !text.starts_with('#')) return text;
    const size_t end = text.find('\n');
    if (end == kNone) return {};
    text.remove_prefix(end + 1);
  }
}

size_t end_of_brackets(std::string_view text, size_t open) noexcept {
  int64_t depth = 0;
  size_t at = open;
  while (at < text.size()) {
    const char sign = text[at];
    if (sign == '"') {
      at = end_of_quotes(text, at);
      if (at == kNone) return kNone;
      continue;
    }
    ++at;
    if (sign == '(' || sign == '[' || sign == '{') {
      ++depth;
    } else if (sign == ')' || sign == ']' || sign == '}') {
      if (--depth <= 0) return at;
    }
  }
  return kNone;
}

std::vector<std::string_view> split_list(std::string_view text) {
  std::vector<std::string_view> parts;
  for (size_t start = 0; start < text.size();) {
    const size_t end = end_of_item(text, start);
    const std::string_view part = without_comments(text.substr(start, end - start));
    if (!part.empty()) parts.push_back(part);
    start = end + 1;
  }
  return parts;
}

std::optional<std::string_view> rest_of_attribute(std::string_view attributes, std::string_view key) noexcept {
  for (size_t start = 0; start < attributes.size();) {
    while (start < attributes.size() && is_space(attributes[start])) ++start;
    const std::string_view rest = attributes.substr(start);
    if (rest.starts_with(key) && rest.size() > key.size() && rest[key.size()] == '=') {
      return rest.substr(key.size() + 1);
    }
    start = end_of_item(attributes, start) + 1;
  }
  return std::nullopt;
}

std::optional<std::string_view> attribute(std::string_view attributes, std::string_view key) noexcept {
  const std::optional<std::string_view> rest = rest_of_attribute(attributes, key);
  if (!rest) return std::nullopt;
  return trimmed(rest->substr(0, end_of_item(*rest, 0)));
}

std::string_view inside_brackets(std::string_view text) noexcept {
  text = trimmed(text);
  if (text.empty() || (text[0] != '(' && text[0] != '[' && text[0] != '{')) return text;
  const size_t end = end_of_brackets(text, 0);
  return end == kNone ? text.substr(1) : text.substr(1, end - 2);
}

std::optional<int64_t> leading_number(std::string_view text) noexcept {
  int64_t value = 0;
  size_t at = 0;
  for (; at < text.size() && is_digit(text[at]); ++at) {
    if (value > (kLargestNumber - 9) / 10) return std::nullopt;
    value = value * 10 + (text[at] - '0');
  }
  if (at == 0) return std::nullopt;
  return value;
}

std::vector<int64_t> numbers_in(std::string_view text, size_t most) {
  std::vector<int64_t> found;
  for (size_t at = 0; at < text.size() && found.size() < most;) {
    if (!is_digit(text[at])) {
      ++at;
      continue;
    }
    const std::optional<int64_t> number = leading_number(text.substr(at));
    found.push_back(number.value_or(kLargestNumber));
    while (at < text.size() && is_digit(text[at])) ++at;
  }
  return found;
}

std::string unquoted(std::string_view text) {
  text = trimmed(text);
  if (text.starts_with('"')) text.remove_prefix(1);
  if (text.ends_with('"')) text.remove_suffix(1);
  std::string result;
  result.reserve(text.size());
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '\\' || at + 1 == text.size()) {
      result += text[at];
      continue;
    }
    const char sign = text[++at];
    if (sign >= '0' && sign <= '3' && at + 2 < text.size() && is_digit(text[at + 1]) && is_digit(text[at + 2])) {
      const int value = (sign - '0') * 64 + (text[at + 1] - '0') * 8 + (text[at + 2] - '0');
      result += static_cast<char>(value);
      at += 2;
    } else {
      result += sign == 'n' ? '\n' : sign == 't' ? '\t' : sign;
    }
  }
  return result;
}

}  // namespace artifex_devices::hlo
