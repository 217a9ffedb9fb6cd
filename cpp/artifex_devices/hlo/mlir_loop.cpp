// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/hlo/mlir_loop.h"

#include "artifex_devices/hlo/execution_counts.h"
#include "artifex_devices/hlo/text_scan.h"

namespace artifex_devices::hlo {
namespace {

std::optional<int64_t> constant_of(const MlirConstants& constants, std::string_view name) {
  const auto found = constants.find(name);
  return found == constants.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace

MlirLoop::MlirLoop(std::string_view operation, const MlirConstants& constants) {
  const size_t open = operation.find('(');
  const size_t close = end_of_brackets(operation, open);
  for (const std::string_view each :
       split_list(operation.substr(open + 1, close == kNone ? kNone : close - open - 2))) {
    const size_t equals = each.find(" = ");
    if (equals != kNone) state_.push_back({each.substr(0, equals), constant_of(constants, each.substr(equals + 3))});
  }
}

void MlirLoop::read_comparison(std::string_view operation, const MlirConstants& constants) {
  std::vector<std::string_view> words = split_list(operation.substr(18, operation.find(" : ") - 18));
  // "LT, %a, %b"; without a comma behind LT the name is its last word.
  if (words.empty() || !words[0].starts_with("LT")) return;
  const size_t blank = words[0].find_last_of(' ');
  if (blank == kNone) {
    words.erase(words.begin());
  } else {
    words[0].remove_prefix(blank + 1);
  }
  if (words.size() < 2) return;
  counter_ = words[0];
  limit_ = constant_of(constants, words[1]);
}

void MlirLoop::read_sum(std::string_view result, std::string_view operation, const MlirConstants& constants) {
  const std::vector<std::string_view> terms = split_list(operation.substr(14, operation.find(" : ") - 14));
  if (terms.size() != 2) return;
  for (const size_t i : {0, 1}) {
    if (terms[i] != counter_) continue;
    if (const std::optional<int64_t> step = constant_of(constants, terms[1 - i])) sums_[result] = *step;
  }
}

std::optional<int64_t> MlirLoop::trips() const {
  const std::vector<std::string_view> results = split_list(returned_);
  for (size_t i = 0; i < state_.size() && i < results.size(); ++i) {
    if (state_[i].name != counter_) continue;
    const auto step = sums_.find(results[i]);
    const std::optional<int64_t> first = state_[i].first;
    if (step == sums_.end() || !first || !limit_) return std::nullopt;
    return passes_of(*first, *limit_, step->second);
  }
  return std::nullopt;
}

}  // namespace artifex_devices::hlo
