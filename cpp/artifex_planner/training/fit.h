// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "artifex_devices/cluster/cluster.h"
#include "artifex_planner/training/config.h"
#include "artifex_planner/training/efficiency.h"
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
  Efficiency efficiency;          // fitted factors have the number of steps as their source; the others are as given
  std::vector<Factor> fitted;     // factors that the steps depend on
  std::vector<double> predicted;  // seconds of each step with these factors
};

/// Fits what kernels and links reach to measured steps: the fractions for products (16 and 8 bits apart), attention
/// (both passes alike), memory, links and network (rings and sums in switches alike), and the seconds of each layer and
/// step. Tiles and message sizes stay as given. The time of a step is a sum of terms, each proportional to 1 /
/// fraction or to fixed seconds; where kernels or communication change sides (hidden or exposed), the sum has other
/// terms, so the least squares are repeated with the terms at the last factors. Errors are relative (relative_fit.h).
/// Each fraction is drawn to its start: doubling it counts as much as one step that is wrong by `kFitPrior`. Fixed
/// seconds are drawn to 0: 1e-4 s of a layer or 0.1 s of a step count as much as one that is wrong by 0.3. Without that
/// a few steps leave some factors open. All steps are of the chip that `start` describes. Throws InvalidArgument for no
/// steps and for seconds that are not above 0, and what plan_training throws. Example: steps that plan_training priced
/// with matmul 0.5 give 0.5.
TrainingFit fit_training(const std::vector<MeasuredStep>& steps, const Efficiency& start);
inline constexpr double kFitPrior = 0.1;

}  // namespace artifex_devices::planner
