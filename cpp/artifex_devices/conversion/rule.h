// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "artifex_devices/base/dtype.h"
#include "artifex_devices/base/shape.h"

namespace artifex_devices {

enum class RuleKind : uint8_t {
  kRename,
  kStack,
  kUnstack,
  kTranspose,
  kSplit,
  kJoin,
  kFlatten,
  kUnflatten,
  kCast,
  kScale,
  kDrop,
  kConstant,
};
inline constexpr std::array<std::string_view, 12> kRuleKindNames = {
    "rename",  "stack",     "unstack", "transpose", "split", "join",
    "flatten", "unflatten", "cast",    "scale",     "drop",  "constant",
};
constexpr std::string_view name(RuleKind kind) noexcept { return kRuleKindNames[static_cast<size_t>(kind)]; }

/// One step of a conversion of checkpoints: how arrays whose names match become others. Members that the kind does not
/// use keep their defaults. docs of the Python functions (checkpoint/rules.py) say what each kind does.
struct Rule {
  RuleKind kind = RuleKind::kRename;
  std::vector<std::string> source;  // patterns; several for join, none for constant
  std::vector<std::string> target;  // patterns; several for split, none for drop, cast, transpose and the like
  std::string placeholder;          // of stack and unstack
  int64_t axis = 0;                 // of split, join, flatten and unflatten; the position of stack and unstack
  Dims axes;                        // of transpose
  Dims sizes;                       // of split, join, flatten and unflatten
  int64_t groups = 1;               // of split and join
  std::optional<DType> dtype;       // of cast and constant
  Dims shape;                       // of constant
  std::string value;                // of constant: the bytes of one element
  std::string value_text;           // of constant: the value as Python writes it
  double factor = 1;                // of scale
  friend bool operator==(const Rule&, const Rule&) = default;
};

template <class Visitor>
void visit_fields(Rule& rule, Visitor&& visit) {
  visit("kind", rule.kind);
  visit("source", rule.source);
  visit("target", rule.target);
  visit("placeholder", rule.placeholder);
  visit("axis", rule.axis);
  visit("axes", rule.axes);
  visit("sizes", rule.sizes);
  visit("groups", rule.groups);
  visit("dtype", rule.dtype);
  visit("shape", rule.shape);
  visit("value", rule.value);
  visit("value_text", rule.value_text);
  visit("factor", rule.factor);
}

/// Throws InvalidArgument for members that cannot be right for any array.
void check_rule(const Rule& rule);

/// The call that creates the rule: `rules.rename("a", "b")`.
std::string to_string(const Rule& rule);

/// The rule that undoes this one. Throws InvalidArgument for kinds that lose something.
Rule inverse_of(const Rule& rule);

/// The rules that undo all rules, in the reverse order.
std::vector<Rule> inverse_of(const std::vector<Rule>& rules);

}  // namespace artifex_devices
