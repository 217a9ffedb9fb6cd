// SPDX-License-Identifier: Apache-2.0
#include "text_signature.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <vector>

namespace artifex_devices::bindings {

namespace {

// The parameters between the parentheses that open the text; nothing if these do not close.
std::optional<std::vector<std::string_view>> parameters_of(std::string_view text) {
  std::vector<std::string_view> result;
  int depth = 0;
  char quote = 0;
  size_t start = 1;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (c == '(' || c == '[' || c == '{') {
      ++depth;
    } else if (c == ')' || c == ']' || c == '}') {
      if (--depth > 0) continue;
      if (i > start) result.push_back(text.substr(start, i - start));
      return result;
    } else if (c == ',' && depth == 1) {
      result.push_back(text.substr(start, i - start));
      start = i + 2;  // after ", "
    }
  }
  return std::nullopt;
}

// "x: int = 1" as "x=1".
std::string without_type(std::string_view parameter) {
  const std::string_view name = parameter.substr(0, parameter.find(':'));
  const size_t value = parameter.rfind(" = ");
  if (value == std::string_view::npos) return std::string(name);
  return fmt::format("{}={}", name, parameter.substr(value + 3));
}

}  // namespace

std::string with_text_signature(std::string_view name, std::string_view doc, std::string_view self) {
  if (!doc.starts_with(name) || !doc.substr(name.size()).starts_with('(')) return std::string(doc);
  const auto parameters = parameters_of(doc.substr(name.size()));
  if (!parameters) return std::string(doc);
  std::vector<std::string> names(parameters->size());
  std::ranges::transform(*parameters, names.begin(), without_type);
  if (!names.empty() && names[0] == "self") names[0] = self;
  return fmt::format("{}({})\n--\n\n{}", name, fmt::join(names, ", "), doc);
}

}  // namespace artifex_devices::bindings
