// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "artifex_devices/conversion/converted_array.h"
#include "artifex_devices/conversion/rule.h"

namespace artifex_devices {

/// All arrays between two rules. Each rule acts on the arrays as the rules before it left them.
class ConversionSteps {
 public:
  explicit ConversionSteps(std::string operation) : operation_(std::move(operation)) {}

  void add_source(const std::string& name, ConvertedArray array);
  /// Throws InvalidArgument, naming the rule, if it matches nothing, does not fit the arrays that it matches, or
  /// creates a name that exists.
  void apply(const Rule& rule);
  std::map<std::string, ConvertedArray>& arrays() noexcept { return arrays_; }

 private:
  std::string operation_;
  std::map<std::string, ConvertedArray> arrays_;
  std::map<std::string, int64_t> taken_;  // names that a rule has consumed, and the rule
  std::vector<Rule> rules_;
};

}  // namespace artifex_devices
