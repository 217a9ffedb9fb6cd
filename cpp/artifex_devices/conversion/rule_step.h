// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "artifex_devices/conversion/converted_array.h"
#include "artifex_devices/conversion/name_pattern.h"
#include "artifex_devices/conversion/rule.h"

namespace artifex_devices {

/// One rule applied to all arrays: the names that it takes, and the arrays that it creates.
class RuleStep {
 public:
  using Arrays = std::map<std::string, ConvertedArray>;

  /// `where` begins messages. The rule and the arrays must outlive the step.
  RuleStep(const Rule& rule, std::string where, const Arrays& arrays);

  /// Throws InvalidArgument if the rule does not fit an array that it matches.
  void run();

  std::set<std::string> taken;
  std::vector<std::pair<std::string, ConvertedArray>> made;

 private:
  std::vector<std::pair<std::string, NameMatch>> matched(const NamePattern& pattern) const;
  const ConvertedArray& take(const std::string& name);
  void add(std::string name, ConvertedArray array);
  int64_t axis_of(const std::string& name, const Dims& shape, int64_t axis) const;
  void stack();
  void unstack();
  void split();
  void join();
  ConvertedArray constant() const;
  ConvertedArray changed(const std::string& name);

  const Rule& rule_;
  std::string where_;
  const Arrays& arrays_;
  std::vector<NamePattern> source_;
  std::vector<NamePattern> target_;
  size_t regions_ = 0;  // of the arrays in `made`
};

}  // namespace artifex_devices
