// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/conversion/rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ranges>
#include <set>
#include <utility>

#include "artifex_devices/base/python_repr.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/conversion/name_pattern.h"

namespace artifex_devices {
namespace {

template <class Texts>
std::string list_text(const Texts& patterns) {
  std::string text;
  for (const std::string& each : patterns) text += (text.empty() ? "" : ", ") + python_repr(each);
  return "[" + text + "]";
}

std::vector<NamePattern> parsed(const std::vector<std::string>& texts, std::string_view operation) {
  std::vector<NamePattern> patterns;
  for (const std::string& each : texts) patterns.emplace_back(each, operation);
  return patterns;
}

// `expected` has the placeholders of the other side, except for `left_out`.
void check_placeholders(const NamePattern& first, const NamePattern& other, std::string_view left_out,
                        std::string_view operation) {
  std::set<std::string> names = first.names();
  names.erase(std::string(left_out));
  if (names != other.names() || first.star_count() != other.star_count()) {
    throw_error(
        "{}: the placeholders of {} and {} differ; expected the same names{} and equally many stars; correct one",
        operation, python_repr(first.text()), python_repr(other.text()),
        left_out.empty() ? "" : fmt::format(", without {{{}}} in the stacked one,", left_out));
  }
}

void check_sizes(const Rule& rule, std::string_view operation) {
  const bool divides = rule.kind == RuleKind::kSplit || rule.kind == RuleKind::kJoin;
  if (rule.sizes.empty() || std::ranges::any_of(rule.sizes, [](int64_t size) { return size < 1; })) {
    throw_error("{}: sizes are {}; expected one or more sizes of 1 or more; correct them", operation,
                to_string(rule.sizes));
  }
  if (!divides) {
    checked_product(rule.sizes, operation);
    return;
  }
  const auto& patterns = rule.kind == RuleKind::kSplit ? rule.target : rule.source;
  if (static_cast<size_t>(rule.sizes.size()) != patterns.size()) {
    throw_error("{}: {} sizes for {} patterns; expected one size for each pattern; correct sizes", operation,
                rule.sizes.size(), patterns.size());
  }
  if (rule.groups < 1) throw_error("{}: groups is {}; expected 1 or more; write groups=1", operation, rule.groups);
  int64_t total = 0;
  for (const int64_t size : rule.sizes) {
    const std::optional<int64_t> sum = checked_add(total, size);
    if (!sum)
      throw_error("{}: the sum of sizes {} does not fit 64 bits; expected less; correct them", operation,
                  to_string(rule.sizes));
    total = *sum;
    if (size % rule.groups != 0) {
      throw_error(
          "{}: size {} is not divisible by {} groups; expected total sizes of all groups; correct sizes or groups",
          operation, size, rule.groups);
    }
  }
}

void check_stack(const Rule& rule, const NamePattern& several, const NamePattern& one, std::string_view operation) {
  const std::set<std::string> names = several.names();
  if (!names.contains(rule.placeholder)) {
    throw_error("{}: axis is {}, which is not a placeholder of {}; expected {}; correct axis", operation,
                python_repr(rule.placeholder), python_repr(several.text()),
                names.empty() ? "a pattern with a placeholder such as {layer}" : "one of " + list_text(names));
  }
  check_placeholders(several, one, rule.placeholder, operation);
}

void check_axes(const Dims& axes, std::string_view operation) {
  for (int64_t d = 0; d < axes.size(); ++d) {
    if (std::ranges::find(axes, d) == axes.end()) {
      throw_error("{}: axes are {}; expected each axis from 0 to {} once; correct them", operation, to_string(axes),
                  axes.size() - 1);
    }
  }
}

}  // namespace

void check_rule(const Rule& rule) {
  const std::string operation = fmt::format("rules.{}", name(rule.kind));
  const std::vector<NamePattern> source = parsed(rule.source, operation);
  const std::vector<NamePattern> target = parsed(rule.target, operation);
  switch (rule.kind) {
    case RuleKind::kRename:
      check_placeholders(source.at(0), target.at(0), "", operation);
      break;
    case RuleKind::kStack:
      check_stack(rule, source.at(0), target.at(0), operation);
      break;
    case RuleKind::kUnstack:
      check_stack(rule, target.at(0), source.at(0), operation);
      break;
    case RuleKind::kTranspose:
      check_axes(rule.axes, operation);
      break;
    case RuleKind::kSplit:
    case RuleKind::kJoin:
      check_sizes(rule, operation);
      for (const NamePattern& each : source) check_placeholders(source.at(0), each, "", operation);
      for (const NamePattern& each : target) check_placeholders(source.at(0), each, "", operation);
      break;
    case RuleKind::kFlatten:
    case RuleKind::kUnflatten:
      check_sizes(rule, operation);
      break;
    case RuleKind::kScale:
      if (!std::isfinite(rule.factor) || rule.factor == 0) {
        throw_error("{}: factor is {}; expected a finite number that is not 0; correct it", operation, rule.factor);
      }
      break;
    case RuleKind::kConstant:
      if (!target.at(0).is_one_name()) {
        throw_error("{}: {} has placeholders; expected the name of one array; write one rule for each array", operation,
                    python_repr(rule.target[0]));
      }
      checked_product(rule.shape, operation);
      if (static_cast<int64_t>(rule.value.size()) != itemsize(rule.dtype.value())) {
        throw_error("{}: the value has {} bytes; expected {}, the bytes of one {}; correct the value", operation,
                    rule.value.size(), itemsize(*rule.dtype), name(*rule.dtype));
      }
      break;
    case RuleKind::kCast:
    case RuleKind::kDrop:
      break;
  }
}

std::string to_string(const Rule& rule) {
  const auto side = [](const std::vector<std::string>& patterns) { return python_repr(patterns.at(0)); };
  const std::string groups = rule.groups == 1 ? "" : fmt::format(", groups={}", rule.groups);
  const std::string sizes = to_string(rule.sizes);
  std::string arguments;
  switch (rule.kind) {
    case RuleKind::kRename:
      arguments = side(rule.source) + ", " + side(rule.target);
      break;
    case RuleKind::kStack:
    case RuleKind::kUnstack:
      arguments = fmt::format("{}, {}, axis={}{}", side(rule.source), side(rule.target), python_repr(rule.placeholder),
                              rule.axis == 0 ? "" : fmt::format(", position={}", rule.axis));
      break;
    case RuleKind::kTranspose:
      arguments = side(rule.source) + ", " + to_string(rule.axes);
      break;
    case RuleKind::kSplit:
      arguments = fmt::format("{}, {}, axis={}, sizes={}{}", side(rule.source), list_text(rule.target), rule.axis,
                              sizes, groups);
      break;
    case RuleKind::kJoin:
      arguments = fmt::format("{}, {}, axis={}, sizes={}{}", list_text(rule.source), side(rule.target), rule.axis,
                              sizes, groups);
      break;
    case RuleKind::kFlatten:
    case RuleKind::kUnflatten:
      arguments = fmt::format("{}, axis={}, sizes={}", side(rule.source), rule.axis, sizes);
      break;
    case RuleKind::kCast:
      arguments = fmt::format("{}, {}", side(rule.source), python_repr(name(*rule.dtype)));
      break;
    case RuleKind::kScale:
      arguments = fmt::format("{}, {}", side(rule.source), rule.factor);
      break;
    case RuleKind::kDrop:
      arguments = side(rule.source);
      break;
    case RuleKind::kConstant:
      arguments = fmt::format("{}, {}, {}, {}", side(rule.target), to_string(rule.shape),
                              python_repr(name(*rule.dtype)), rule.value_text);
      break;
  }
  return fmt::format("rules.{}({})", name(rule.kind), arguments);
}

Rule inverse_of(const Rule& rule) {
  Rule inverse = rule;
  std::swap(inverse.source, inverse.target);
  switch (rule.kind) {
    case RuleKind::kRename:
      return inverse;
    case RuleKind::kStack:
      inverse.kind = RuleKind::kUnstack;
      return inverse;
    case RuleKind::kUnstack:
      inverse.kind = RuleKind::kStack;
      return inverse;
    case RuleKind::kSplit:
      inverse.kind = RuleKind::kJoin;
      return inverse;
    case RuleKind::kJoin:
      inverse.kind = RuleKind::kSplit;
      return inverse;
    case RuleKind::kConstant:
      inverse = Rule{};
      inverse.kind = RuleKind::kDrop;
      inverse.source = rule.target;
      return inverse;
    default:
      break;
  }
  inverse = rule;  // the others change arrays in their place
  switch (rule.kind) {
    case RuleKind::kTranspose:
      for (int64_t d = 0; d < rule.axes.size(); ++d) inverse.axes[rule.axes[d]] = d;
      return inverse;
    case RuleKind::kFlatten:  // an axis that is counted from the end has another number in the other array
      inverse.kind = RuleKind::kUnflatten;
      if (rule.axis < 0) inverse.axis += rule.sizes.size() - 1;
      return inverse;
    case RuleKind::kUnflatten:
      inverse.kind = RuleKind::kFlatten;
      if (rule.axis < 0) inverse.axis -= rule.sizes.size() - 1;
      return inverse;
    case RuleKind::kScale:
      inverse.factor = 1 / rule.factor;
      check_rule(inverse);
      return inverse;
    case RuleKind::kCast:
      throw_error(
          "rules.inverse: {} has no inverse, because it does not say which dtype the arrays had; expected rules "
          "that lose nothing; leave the cast out, and append a cast to the result",
          to_string(rule));
    default:
      throw_error(
          "rules.inverse: {} has no inverse, because it loses the arrays; expected rules that lose nothing; "
          "leave it out",
          to_string(rule));
  }
}

std::vector<Rule> inverse_of(const std::vector<Rule>& rules) {
  std::vector<Rule> inverse;
  for (const Rule& rule : rules | std::views::reverse) inverse.push_back(inverse_of(rule));
  return inverse;
}

}  // namespace artifex_devices
