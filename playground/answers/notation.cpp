// SPDX-License-Identifier: Apache-2.0
#include "notation.h"

#include <charconv>
#include <utility>
#include <vector>

#include "artifex_devices/base/throw_error.h"

namespace artifex_devices::playground {
namespace {

bool is_blank(char sign) noexcept { return sign == ' ' || sign == '\t' || sign == '\n' || sign == '\r'; }

std::string_view trimmed(std::string_view text) noexcept {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

/// The text between two brackets that enclose all of it; otherwise the text.
std::string_view inside(std::string_view text, char open, char close) noexcept {
  if (text.size() < 2 || text.front() != open || text.back() != close) return text;
  return trimmed(text.substr(1, text.size() - 2));
}

/// Parts between commas outside brackets. An empty last part, after a trailing comma, is left out.
std::vector<std::string_view> parts_of(std::string_view text) {
  std::vector<std::string_view> parts;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    const char sign = i < text.size() ? text[i] : ',';
    if (sign == '(' || sign == '[') ++depth;
    if (sign == ')' || sign == ']') --depth;
    if (sign != ',' || (depth != 0 && i < text.size())) continue;
    parts.push_back(trimmed(text.substr(begin, i - begin)));
    begin = i + 1;
  }
  if (parts.back().empty()) parts.pop_back();
  return parts;
}

/// A name without its quotes.
std::string_view name_of(std::string_view part, std::string_view argument, std::string_view all, const char* expected) {
  const std::string_view name = inside(inside(part, '\'', '\''), '"', '"');
  if (name.empty() || name.find_first_of("'\"()[]{}=:,") != std::string_view::npos) {
    throw_error("{}: {:?} is not the name of an axis; expected {}, got {:?}; correct it", argument, part, expected,
                all);
  }
  return name;
}

int64_t size_of(std::string_view part, std::string_view argument, std::string_view all, const char* expected) {
  int64_t size = 0;
  const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), size);
  if (error != std::errc() || end != part.data() + part.size()) {
    throw_error("{}: {:?} is not a size; expected {}, got {:?}; write a number below 2**63", argument, part, expected,
                all);
  }
  return size;
}

SpecEntry entry_of(std::string_view part, std::string_view all) {
  constexpr const char* kExpected = "None, an axis or a tuple of axes for each dimension, as in P(\"data\", None)";
  if (part == "None") return SpecEntry();
  const std::string_view tuple = inside(inside(part, '(', ')'), '[', ']');
  if (tuple.size() == part.size()) return SpecEntry(AxisName(name_of(part, "spec", all, kExpected)));
  std::vector<AxisName> axes;
  for (const std::string_view axis : parts_of(tuple)) axes.emplace_back(name_of(axis, "spec", all, kExpected));
  return SpecEntry(std::move(axes));
}

}  // namespace

AbstractMesh mesh_of(std::string_view text) {
  constexpr const char* kExpected = "axes and their sizes, as in data=4, model=2";
  std::vector<AxisName> names;
  Dims sizes;
  for (const std::string_view part : parts_of(inside(trimmed(text), '{', '}'))) {
    const size_t middle = part.find_first_of("=:");
    if (middle == std::string_view::npos) {
      throw_error("mesh: {:?} has no size; expected {}, got {:?}; write {}=2", part, kExpected, text, part);
    }
    names.emplace_back(name_of(trimmed(part.substr(0, middle)), "mesh", text, kExpected));
    sizes.push_back(size_of(trimmed(part.substr(middle + 1)), "mesh", text, kExpected));
  }
  if (names.empty()) throw_error("mesh: there is no axis; expected {}; write data=4, model=2", kExpected);
  return {std::move(names), std::move(sizes)};
}

Dims shape_of(std::string_view text) {
  std::string commas(inside(inside(trimmed(text), '(', ')'), '[', ']'));
  for (char& sign : commas) {
    if (sign == 'x') sign = ',';
  }
  Dims shape;
  for (const std::string_view part : parts_of(commas)) {
    shape.push_back(size_of(part, "shape", text, "the size of each dimension, as in 4096, 1024"));
  }
  return shape;
}

PartitionSpec spec_of(std::string_view text) {
  std::string_view entries = trimmed(text);
  for (const std::string_view name : {"PartitionSpec", "P"}) {
    const std::string_view rest = entries.starts_with(name) ? trimmed(entries.substr(name.size())) : entries;
    if (rest.size() == entries.size() || !rest.starts_with('(')) continue;
    if (!rest.ends_with(')')) {
      throw_error("spec: the last parenthesis is missing; expected P(\"data\", None), got {:?}; close it", text);
    }
    entries = inside(rest, '(', ')');
    break;
  }
  std::vector<SpecEntry> spec;
  for (const std::string_view part : parts_of(entries)) spec.push_back(entry_of(part, text));
  return PartitionSpec(std::move(spec));
}

DType dtype_of(std::string_view name) {
  const std::optional<DType> dtype = dtype_from_name(name);
  if (!dtype || row_of(*dtype).bits < 8) {
    throw_error("dtype: {:?} is not a dtype of whole bytes; expected a name such as float32 or bfloat16; correct it",
                name);
  }
  return *dtype;
}

}  // namespace artifex_devices::playground
