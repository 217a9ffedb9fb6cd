// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "artifex_planner/training/efficiency.h"

namespace artifex_devices::planner {
namespace {

constexpr std::array<Factor, 9> kFitted = {
    Factor::kMatmul,     Factor::kMatmulFloat8, Factor::kAttentionForward, Factor::kAttentionBackward,
    Factor::kMemory,     Factor::kLinkFraction, Factor::kNetwork,          Factor::kLayerSeconds,
    Factor::kStepSeconds};

/// What fit_training() finds for the runs of a chip that are not held out; -1 where the runs do not depend on it.
/// bench/planner_accuracy.py prints these rows, and a test compares them.
struct FittedChip {
  std::string_view chip;  // part of its name
  int runs;
  std::array<double, kFitted.size()> values;  // of kFitted
};
constexpr std::array<FittedChip, 7> kFittedChips = {{
    {"A100 SXM 40GB", 22, {0.705, -1, 0.334, 0.288, 0.624, -1, -1, 1.69e-06, 0.0106}},
    {"A100 SXM 80GB", 31, {0.732, -1, 0.371, 0.32, 0.924, 1, 1, 0, 0.00927}},
    {"H100", 42, {0.598, 0.542, 0.56, 0.484, 0.273, 0.721, 0.532, 7.38e-06, 0.0339}},
    {"v4", 5, {0.747, -1, 0.644, 0.556, 0.822, -1, -1, 2.12e-07, 0.000361}},
    {"v5e", 16, {0.803, -1, 0.682, 0.589, 1, -1, -1, 3.58e-07, 0}},
    {"v5p", 11, {0.732, -1, 0.452, 0.39, 0.664, -1, -1, 5.71e-07, 0.00571}},
    {"v6e", 2, {0.613, -1, 0.638, 0.551, 0.865, -1, -1, 0, 0}},
}};

}  // namespace

Efficiency default_efficiency(const Cluster& cluster) {
  Efficiency result = published_efficiency(cluster);
  std::string_view name = cluster.chip().name;
  const auto is_chip = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
  if (is_chip("H200") || is_chip("H800")) name = "H100";  // the same processors
  const auto* const row =
      std::ranges::find_if(kFittedChips, [&](const FittedChip& each) { return is_chip(each.chip); });
  if (row == kFittedChips.end()) return result;
  const Efficiency published = result;
  const auto set = [&](Factor factor, double value) {
    result.factors[static_cast<size_t>(factor)] = {
        value, fmt::format("fit of {} published runs on {}, docs/planner_accuracy.md", row->runs, row->chip)};
  };
  for (size_t i = 0; i < kFitted.size(); ++i) {
    if (row->values[i] < 0) continue;
    set(kFitted[i], row->values[i]);
    // The fit scales both alike.
    const double part = row->values[i] / published[kFitted[i]];
    if (kFitted[i] == Factor::kLinkFraction) set(Factor::kNvls, std::min(published[Factor::kNvls] * part, 1.0));
    if (kFitted[i] == Factor::kNetwork) set(Factor::kSharp, std::min(published[Factor::kSharp] * part, 1.0));
  }
  return result;
}

}  // namespace artifex_devices::planner
