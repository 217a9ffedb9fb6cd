// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "artifex_planner/step/expected.h"
#include "step_models.h"

namespace artifex_devices::planner {
namespace {

DeviceRates rates_of(double peak, double memory_bandwidth) {
  DeviceRates made;
  made.peak_flops[static_cast<size_t>(MatmulFormat::kBFloat16)] = peak;
  made.memory_bandwidth = memory_bandwidth;
  made.memory_bytes = 1 << 20;
  return made;
}

Efficiency with(const std::vector<std::pair<Factor, double>>& changes) {
  Efficiency made = ideal_efficiency();
  for (const auto& [factor, value] : changes) made.factors[static_cast<size_t>(factor)].value = value;
  return made;
}

/// 4 devices behind a switch of 100 bytes/s each, and a second a step.
StepNetwork four_behind_switch() { return {{4}, {{}, {NodeGroup{SwitchGroup{4, 100, {0, 1}}, 1, 0, {}}}}}; }

StepWork work_of(const LetterModel& made, const std::map<char, MeshAxes>& cuts) {
  return step_work(made.model, {4}, made.rules(cuts));
}

TEST(ExpectedStep, SumsItsPartsAtTheReachedRates) {
  const StepWork work = work_of(two_matrices(), {{'b', 1}, {'e', 1}});
  const Efficiency factors = with({{Factor::kMatmul, 0.5},
                                   {Factor::kMemory, 0.25},
                                   {Factor::kLinkFraction, 0.5},
                                   {Factor::kLinksHalfBytes, 512},
                                   {Factor::kLayerSeconds, 3},
                                   {Factor::kStepSeconds, 7}});
  const ExpectedStep step = expected_step(work, rates_of(1000, 1000), four_behind_switch(), factors);
  EXPECT_DOUBLE_EQ(step.products, 6 * (2.0 * 64 * 8 * 32 / 4) / (1000 * 0.5));
  EXPECT_EQ(step.attention, 0);
  // `in` is the result of an element-wise kernel: two operands read and one result written, three passes.
  EXPECT_DOUBLE_EQ(step.elementwise, 3 * 3 * (64 * 8 * 2 / 4.0) / (1000 * 0.25));
  EXPECT_DOUBLE_EQ(step.update, 2 * (512 + 2 * 2048 + 2 * 512) / 4.0 / (1000 * 0.25));
  EXPECT_EQ(step.layers, 2 * 3);
  EXPECT_EQ(step.once, 7);
  // Six collectives of 512 bytes, at half of half of the rate, after two rounds.
  EXPECT_DOUBLE_EQ(step.weights, 6 * (2 + 512 * 3 / 4.0 / (100 * 0.25)));
  EXPECT_EQ(step.activations, 0);
  EXPECT_EQ(step.hidden(), step.weights);
  EXPECT_DOUBLE_EQ(step.overlapped(), step.products + step.elementwise + step.update + 6 + 7);
  EXPECT_DOUBLE_EQ(step.serial(), step.overlapped() + step.weights);
}

TEST(ExpectedStep, HidesCollectivesOfWeightsOnly) {
  const StepWork work = work_of(two_matrices(), {{'f', 1}});  // all-reduces of activations
  const ExpectedStep step = expected_step(work, rates_of(1e9, 1e9), four_behind_switch(), ideal_efficiency());
  EXPECT_EQ(step.weights, 0);
  EXPECT_GT(step.activations, 0);
  EXPECT_EQ(step.hidden(), 0);
  EXPECT_EQ(step.overlapped(), step.serial());
  // Without computation to hide behind, collectives of weights are exposed except for what the passes take.
  ExpectedStep exposed;
  exposed.products = 2;
  exposed.weights = 5;
  exposed.activations = 4;
  exposed.update = 1;
  EXPECT_EQ(exposed.hidden(), 2);
  EXPECT_EQ(exposed.overlapped(), 2 + 1 + 4 + 3);
}

TEST(ExpectedStep, IsNeverBelowTheSecondsOfItsDevices) {
  for (const auto& cuts : std::vector<std::map<char, MeshAxes>>{{{'b', 1}}, {{'b', 1}, {'e', 1}}, {{'f', 1}}, {}}) {
    const StepWork work = work_of(two_matrices(), cuts);
    const Efficiency factors = with({{Factor::kMatmul, 0.7}, {Factor::kMemory, 0.3}, {Factor::kLinkFraction, 0.6}});
    const double least = expected_device_seconds(work, rates_of(1000, 900), factors).serial();
    EXPECT_GE(expected_step(work, rates_of(1000, 900), four_behind_switch(), factors).overlapped(), least);
  }
}

TEST(ExpectedProducts, FillTilesAndShareWaves) {
  StepProduct product;
  product.flops = {1000, 0};
  product.rows = 24;
  product.columns = 16;
  const Efficiency factors =
      with({{Factor::kTileRows, 16}, {Factor::kTileColumns, 16}, {Factor::kProcessors, 4}, {Factor::kMatmul, 0.5}});
  // Half of the tile's columns: 2 x 2 tiles, three quarters of their rows filled, one wave of 4.
  EXPECT_DOUBLE_EQ(expected_product_seconds(product, rates_of(100, 1e9), factors), 1000 / (100 * 0.5 * 0.75));
  product.columns = 8;  // one tile in a row: 2 of 4 processors
  EXPECT_DOUBLE_EQ(expected_product_seconds(product, rates_of(100, 1e9), factors), 1000 / (100 * 0.5 * 0.75 / 2));
  product.batches = 2;
  EXPECT_DOUBLE_EQ(expected_product_seconds(product, rates_of(100, 1e9), factors), 1000 / (100 * 0.5 * 0.75));
  product.bytes = {5000, 0};
  EXPECT_DOUBLE_EQ(expected_product_seconds(product, rates_of(100, 50), factors), 100);
}

TEST(ExpectedProducts, OfAttentionReachTheFractionOfTheirPass) {
  StepProduct product;
  product.flops = {1000, 0};
  product.rows = 3;
  product.is_attention = true;
  const Efficiency factors =
      with({{Factor::kAttentionForward, 0.5}, {Factor::kAttentionBackward, 0.25}, {Factor::kTileRows, 128}});
  EXPECT_DOUBLE_EQ(expected_product_seconds(product, rates_of(100, 1e9), factors), 20);
  product.kind = StepProductKind::kRecomputed;  // in the backward pass
  EXPECT_DOUBLE_EQ(expected_product_seconds(product, rates_of(100, 1e9), factors), 40);
}

TEST(StepWork, HasTheSizesOfTheProductsOfOneDevice) {
  const StepWork work = work_of(two_matrices(), {{'b', 1}});
  const auto sizes = [](const StepProduct& each) { return std::vector<double>{each.rows, each.columns, each.batches}; };
  ASSERT_EQ(work.products.size(), 6U);
  EXPECT_EQ(sizes(work.products[0]), (std::vector<double>{16, 32, 1}));  // in * w1
  EXPECT_EQ(sizes(work.products[1]), (std::vector<double>{16, 8, 1}));   // tmp * w2
  EXPECT_EQ(sizes(work.products[2]), (std::vector<double>{16, 32, 1}));  // gradient of tmp
  EXPECT_EQ(sizes(work.products[3]), (std::vector<double>{32, 8, 1}));   // gradient of w2
  EXPECT_FALSE(work.products[0].is_attention);
  EXPECT_EQ(work.layer_passes, 2);
}

TEST(StepWork, CountsElementwiseKernels) {
  // x is a sum, normed to y; y * w -> z, which stays on the chip; u = lookup of rows of w.
  LetterModel made({{'b', 8}, {'d', 4}, {'f', 2}, {'v', 16}});
  made.tensor("x", "bd").tensor("scale", "d", StepRole::kParameter).tensor("y", "bd");
  made.tensor("w", "df", StepRole::kParameter).tensor("z", "bf").tensor("table", "vd", StepRole::kParameter);
  made.tensor("rows", "bd");
  made.op(StepOpKind::kElementwise, "x", "scale", "y")
      .matmul("y", "w", "z")
      .op(StepOpKind::kLookup, "table", "", "rows");
  made.model.is_training = false;
  const double once = 8 * 4 * 2;
  // x: 3 (two operands, one result); y: 1, because x has just been written; rows: read and written.
  EXPECT_EQ(step_work(made.model, {}, made.rules({})).elementwise_bytes.at(1), (3 + 1 + 2) * once);
  EXPECT_EQ(step_work(made.model, {}, made.rules({})).elementwise_bytes.at(2), 2 * (3 + 1 + 2) * once);
  made.model.is_training = true;
  EXPECT_EQ(step_work(made.model, {}, made.rules({})).elementwise_bytes.at(1), 3 * (3 + 1 + 2) * once);
  made.model.tensors[2].is_kept = false;  // y is computed again
  EXPECT_EQ(step_work(made.model, {}, made.rules({})).elementwise_bytes.at(1), (3 * (3 + 2) + 4) * once);
}

}  // namespace
}  // namespace artifex_devices::planner
