// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/conversion/conversion_steps.h"

#include <fmt/format.h>

#include <utility>

#include "artifex_devices/base/python_repr.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/conversion/name_pattern.h"
#include "artifex_devices/conversion/rule_step.h"

namespace artifex_devices {

constexpr size_t kLongestName = size_t{1} << 16;  // bytes; patterns are compared in time and memory that grow with it

void ConversionSteps::add_source(const std::string& name, ConvertedArray array) {
  if (name.size() > kLongestName) {
    throw_error("{}: an array of the source has a name of {} bytes, {} and so on; expected at most {}; rename it",
                operation_, name.size(), python_repr(name.substr(0, 60)), kLongestName);
  }
  if (!arrays_.emplace(name, std::move(array)).second) {
    throw_error("{}: the source has two arrays with the name {}; expected each name once; correct the source",
                operation_, python_repr(name));
  }
}

void ConversionSteps::apply(const Rule& rule) {
  check_rule(rule);
  const auto number = static_cast<int64_t>(rules_.size());
  const std::string where = fmt::format("{}: rule {}, {}", operation_, number + 1, to_string(rule));
  rules_.push_back(rule);
  RuleStep step(rule, where, arrays_);
  step.run();
  if (step.taken.empty() && rule.kind != RuleKind::kConstant) {
    const NamePattern pattern(rule.source[0], where);
    for (const auto& [name, other] : taken_) {
      if (!pattern.match(name)) continue;
      throw_error(
          "{}: matches no array, because rule {}, {}, has taken {}; expected one rule for each array; remove one "
          "of both",
          where, other + 1, to_string(rules_[static_cast<size_t>(other)]), python_repr(name));
    }
    throw_error("{}: matches no array{}; correct the pattern or remove the rule", where,
                arrays_.empty() ? std::string(", because there are none; expected one")
                                : fmt::format("; expected names such as {}", python_repr(arrays_.begin()->first)));
  }
  for (const std::string& name : step.taken) {
    arrays_.erase(name);
    taken_[name] = number;
  }
  for (auto& [name, array] : step.made) {
    array.rule = number;
    taken_.erase(name);
    const auto [found, is_new] = arrays_.emplace(name, std::move(array));
    if (is_new) continue;
    const int64_t other = found->second.rule;
    const std::string owner = other < 0         ? "the source has"
                              : other == number ? "the same rule creates from another array"
                                                : fmt::format("rule {}, {}, creates", other + 1,
                                                              to_string(rules_[static_cast<size_t>(other)]));
    throw_error("{}: creates {}, which {}; expected one array for each name; correct one of both", where,
                python_repr(name), owner);
  }
  size_t regions = 0;
  for (const auto& [name, array] : arrays_) regions += array.regions.size();
  if (regions > kMaxRegions) {
    throw_error("{}: divides the arrays into {} boxes; expected at most {}; convert in two steps", where, regions,
                kMaxRegions);
  }
}

}  // namespace artifex_devices
