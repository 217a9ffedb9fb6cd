// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "artifex_devices/cluster/cluster.h"
#include "artifex_planner/cost/efficiency.h"
#include "artifex_planner/training/config.h"
#include "artifex_planner/training/model.h"

namespace artifex_devices::planner {

/// A training step with its measured seconds.
struct MeasuredStep {
  TransformerShape shape;
  ClusterRef cluster;
  TrainingConfig config;
  double seconds = 0;
};

struct TrainingFit {
  Efficiency efficiency;          // the source of fitted factors is the number of steps; other factors are unchanged
  std::vector<Factor> fitted;     // factors that the steps depend on
  std::vector<double> predicted;  // seconds of each step with these factors
};
void visit_fields(FieldsOf<TrainingFit> auto& fit, const auto& visit) {
  visit("efficiency", fit.efficiency);
  visit("fitted", fit.fitted);
  visit("predicted", fit.predicted);
}

/// Fits the efficiency of kernels and links to measured steps: the fractions for products (16 and 8 bits separately),
/// attention (the same for both passes), memory, links and network (the same for rings and sums in switches), grouped
/// products, the exchange of tokens between experts, and the fixed seconds of each layer, its experts and step. Tiles
/// and message sizes do not change. The time of a step is a sum of terms, each proportional to 1 / fraction or to fixed
/// seconds; if kernels or communication change between hidden and exposed, the terms change, so the least squares are
/// repeated with the terms for the last factors. Errors are relative (relative_fit.h). A prior draws
/// each fraction to its start: doubling it counts as much as a relative error
/// of `kFitPrior` in one step. It draws fixed seconds to 0: 1e-4 s per layer or 0.1 s per step count as much as an
/// error of 0.3. Without the prior, a few steps do not determine all factors. All steps are of the chip that `start`
/// describes. Throws InvalidArgument for no steps and for seconds that are not above 0, and what plan_training throws.
/// Example: from steps that plan_training estimated with matmul 0.5, the fit finds 0.5.
TrainingFit fit_training(const std::vector<MeasuredStep>& steps, const Efficiency& start);
inline constexpr double kFitPrior = 0.1;

}  // namespace artifex_devices::planner
