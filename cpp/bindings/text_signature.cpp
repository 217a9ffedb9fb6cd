// SPDX-License-Identifier: Apache-2.0
#include "text_signature.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace artifex_devices::bindings {

namespace {

// "x: int = 1" as "x=1".
std::string without_type(std::string_view parameter) {
  const std::string_view name = parameter.substr(0, parameter.find(':'));
  const size_t value = parameter.rfind(" = ");
  if (value == std::string_view::npos) return std::string(name);
  return fmt::format("{}={}", name, parameter.substr(value + 3));
}

}  // namespace

std::vector<std::string_view> split_outside_brackets(std::string_view text, std::string_view mark) {
  std::vector<std::string_view> parts;
  int depth = 0;
  char quote = 0;
  size_t from = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (c == '[' || c == '(' || c == '{') {
      ++depth;
    } else if (c == ']' || c == ')' || c == '}') {
      --depth;
    } else if (depth == 0 && text.substr(i).starts_with(mark)) {
      parts.push_back(text.substr(from, i - from));
      i += mark.size() - 1;
      from = i + 1;
    }
  }
  if (from < text.size()) parts.push_back(text.substr(from));
  return parts;
}

std::string with_text_signature(std::string_view name, std::string_view doc, std::string_view self) {
  if (!doc.starts_with(name) || !doc.substr(name.size()).starts_with('(')) return std::string(doc);
  const std::string_view line = doc.substr(0, doc.find('\n'));
  const size_t open = name.size();
  const size_t close = line.substr(0, line.rfind(" -> ")).rfind(')');
  if (close == std::string_view::npos) return std::string(doc);
  std::vector<std::string> names;
  for (const std::string_view part : split_outside_brackets(line.substr(open + 1, close - open - 1), ", ")) {
    names.push_back(without_type(part));
  }
  if (!names.empty() && names[0] == "self") names[0] = self;
  return fmt::format("{}({})\n--\n\n{}", name, fmt::join(names, ", "), doc);
}

}  // namespace artifex_devices::bindings
