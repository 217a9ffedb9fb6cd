// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "artifex_devices/base/error.h"
#include "artifex_devices/cluster/cluster_presets.h"
#include "artifex_planner/training/fit.h"
#include "artifex_planner/training/plan.h"

namespace artifex_devices::planner {
namespace {

TransformerShape model(int64_t layers, int64_t embed) {
  return {.name = "model",
          .layers = layers,
          .embed = embed,
          .mlp = 4 * embed,
          .heads = embed / 128,
          .kv_heads = embed / 128,
          .head_dim = 128,
          .vocab = 32000};
}

MeasuredStep step(const TransformerShape& shape, int64_t nodes, int64_t tensor, int64_t sequence) {
  MeasuredStep result{shape, gpu_cluster("h100", nodes, {}), {}, 1};
  result.config.tensor = tensor;
  result.config.data = 8 * nodes / tensor;
  result.config.zero = 3;
  result.config.batch = 4 * result.config.data;
  result.config.sequence = sequence;
  result.config.overlap = {0, 0, 0, 0, 0, 0};  // all communication counts
  return result;
}

std::vector<MeasuredStep> steps() {
  return {step(model(32, 4096), 1, 1, 2048),  step(model(32, 4096), 4, 1, 8192), step(model(40, 5120), 2, 8, 4096),
          step(model(24, 2048), 1, 2, 4096),  step(model(80, 8192), 8, 8, 2048), step(model(24, 2048), 1, 1, 65536),
          step(model(32, 2560), 16, 1, 2048), step(model(12, 1024), 1, 4, 512)};
}

void set_factor(Efficiency& efficiency, Factor factor, double value) {
  efficiency.factors[static_cast<size_t>(factor)].value = value;
}

TEST(TrainingFit, FindsTheFactorsWithWhichStepsWerePriced) {
  std::vector<MeasuredStep> measured = steps();
  const Efficiency start = published_efficiency(*measured[0].cluster);
  Efficiency truth = start;
  set_factor(truth, Factor::kMatmul, 0.5);
  set_factor(truth, Factor::kLinkFraction, 0.4);
  set_factor(truth, Factor::kNvls, 0.4 / start[Factor::kLinkFraction] * start[Factor::kNvls]);  // scaled alike
  set_factor(truth, Factor::kNetwork, 0.6);
  for (MeasuredStep& each : measured) {
    each.seconds = plan_training(each.shape, *each.cluster, each.config, truth).expected.total();
  }
  const TrainingFit found = fit_training(measured, start);
  for (size_t i = 0; i < measured.size(); ++i)
    EXPECT_NEAR(found.predicted[i] / measured[i].seconds, 1, 0.03) << i;  // drawn to the start
  EXPECT_NEAR(found.efficiency[Factor::kMatmul], 0.5, 0.02);
  EXPECT_NEAR(found.efficiency[Factor::kLinkFraction], 0.4, 0.04);
  EXPECT_NEAR(found.efficiency[Factor::kNetwork], 0.6, 0.06);
  EXPECT_EQ(found.efficiency.factors[static_cast<size_t>(Factor::kMatmul)].source, "fit of 8 measured steps");
  // No step has 8-bit products.
  EXPECT_EQ(std::ranges::count(found.fitted, Factor::kMatmulFloat8), 0);
  EXPECT_EQ(found.efficiency[Factor::kMatmulFloat8], start[Factor::kMatmulFloat8]);
}

TEST(TrainingFit, ExactStepsLeaveTheStart) {
  std::vector<MeasuredStep> measured = steps();
  const Efficiency start = published_efficiency(*measured[0].cluster);
  for (MeasuredStep& each : measured) {
    each.seconds = plan_training(each.shape, *each.cluster, each.config, start).expected.total();
  }
  const TrainingFit found = fit_training(measured, start);
  for (int i = 0; i < kFactorCount; ++i) {
    const auto factor = static_cast<Factor>(i);
    EXPECT_NEAR(found.efficiency[factor], start[factor], 1e-6 + 1e-3 * start[factor]) << to_string(factor);
  }
}

TEST(TrainingFit, OneStepIsEnoughAndFractionsStayBelowOne) {
  std::vector<MeasuredStep> measured = {steps()[0]};
  const Efficiency start = published_efficiency(*measured[0].cluster);
  const double expected =
      plan_training(measured[0].shape, *measured[0].cluster, measured[0].config, start).expected.total();
  measured[0].seconds = 1.3 * expected;
  EXPECT_NEAR(fit_training(measured, start).predicted[0], 1.3 * expected, 0.03 * expected);
  measured[0].seconds = 0.01 * expected;  // faster than the peak
  const TrainingFit found = fit_training(measured, start);
  EXPECT_TRUE(efficiency_mistakes(found.efficiency).empty());
  EXPECT_LT(found.predicted[0], expected);
}

TEST(TrainingFit, BadStepsAreErrors) {
  const Efficiency start = ideal_efficiency();
  EXPECT_THROW(fit_training({}, start), InvalidArgument);
  std::vector<MeasuredStep> measured = steps();
  measured[3].seconds = 0;
  EXPECT_THROW(fit_training(measured, start), InvalidArgument);
  measured[3].seconds = 1;
  measured[3].config.tensor = 3;
  EXPECT_THROW(fit_training(measured, start), InvalidArgument);
}

}  // namespace
}  // namespace artifex_devices::planner
