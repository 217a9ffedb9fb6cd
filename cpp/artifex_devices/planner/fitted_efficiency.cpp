// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "artifex_devices/planner/training_efficiency.h"

namespace artifex_devices {
namespace {

constexpr std::array<Factor, 9> kFitted = {
    Factor::kMatmul, Factor::kMatmulFloat8, Factor::kAttentionForward, Factor::kAttentionBackward, Factor::kMemory,
    Factor::kLinks,  Factor::kNetwork,      Factor::kLayerSeconds,     Factor::kStepSeconds};

/// What fit_training() finds for the runs of a chip that are not held out; -1 where the runs do not depend on it.
/// bench/planner_accuracy.py prints these rows, and a test compares them.
struct FittedChip {
  std::string_view chip;  // part of its name
  int runs;
  std::array<double, kFitted.size()> values;  // of kFitted
};
constexpr std::array<FittedChip, 7> kChips = {{
    {"A100 SXM 40GB", 22, {0.669, -1, 0.467, 0.403, 0.709, -1, -1, 3.17e-06, 0.0169}},
    {"A100 SXM 80GB", 24, {0.727, -1, 0.532, 0.459, 0.879, 1, 1, 0, 0.0133}},
    {"H100", 38, {0.559, 0.482, 0.537, 0.463, 0.471, 0.638, 1, 8.64e-06, 0.0696}},
    {"v4", 5, {0.748, -1, 0.604, 0.521, 0.844, -1, -1, 2.18e-07, 0.000389}},
    {"v5e", 16, {0.81, -1, 0.611, 0.528, 0.886, -1, -1, 3.6e-07, 0}},
    {"v5p", 11, {0.725, -1, 0.576, 0.497, 0.82, -1, -1, 6.1e-07, 0.00612}},
    {"v6e", 2, {0.634, -1, 0.589, 0.509, 0.827, -1, -1, 5.24e-08, 0.000233}},
}};

}  // namespace

Efficiency default_efficiency(const Cluster& cluster) {
  Efficiency result = published_efficiency(cluster);
  std::string_view name = cluster.chip().name;
  if (name.find("H200") != std::string_view::npos) name = "H100";  // the same processors
  const auto* const row = std::ranges::find_if(
      kChips, [&](const FittedChip& each) { return name.find(each.chip) != std::string_view::npos; });
  if (row == kChips.end()) return result;
  for (size_t i = 0; i < kFitted.size(); ++i) {
    if (row->values[i] < 0) continue;
    result.factors[static_cast<size_t>(kFitted[i])] = {
        row->values[i], fmt::format("fit of {} published runs on {}, docs/planner_accuracy.md", row->runs, row->chip)};
  }
  return result;
}

}  // namespace artifex_devices
