// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "artifex_devices/base/error.h"
#include "artifex_planner/step/cost.h"
#include "made_clusters.h"
#include "step_models.h"

namespace artifex_devices::planner {
namespace {

/// 6 * 2 * 64 * 8 * 32 FLOPs of the two matrices, over 4 devices.
constexpr double kFlops = 6.0 * (2 * 64 * 8 * 32) / 4;

DeviceRates hardware(double peak, double memory_bandwidth = 1e18) {
  DeviceRates made;
  made.peak_flops[static_cast<size_t>(MatmulFormat::kBFloat16)] = peak;
  made.memory_bandwidth = memory_bandwidth;
  made.memory_bytes = 1 << 20;
  return made;
}

StepNetwork network_of(const LocalGroup& group) { return {{4}, {{}, {NodeGroup{group, 1, 0, {}}}}}; }

StepNetwork ring(double latency) { return network_of(TorusGroup{{{4, true, 1}}, 100, {0, latency}}); }
StepNetwork behind_switch(double latency) { return network_of(SwitchGroup{4, 100, {0, latency}}); }

StepWork fully_sharded() {
  const LetterModel made = two_matrices();
  return step_work(made.model, {4}, made.rules({{'b', 1}, {'e', 1}}));
}

StepWork tensor_parallel() {
  const LetterModel made = two_matrices();
  return step_work(made.model, {4}, made.rules({{'f', 1}}));
}

void expect_regimes(const std::vector<StepRegime>& found, const std::vector<StepRegime>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].bound, expected[i].bound);
    EXPECT_DOUBLE_EQ(found[i].begin, expected[i].begin);
    EXPECT_DOUBLE_EQ(found[i].end, expected[i].end);
  }
}

TEST(StepCost, UsesTheSecondsOfTheCollectiveModels) {
  // Six collectives of 512 bytes: 3/4 of them over two links of 100 bytes/s, and two hops of a second.
  const StepSeconds seconds = step_seconds(fully_sharded(), hardware(1000), ring(1));
  EXPECT_DOUBLE_EQ(seconds.network, 6 * (512 * 3.0 / 4 / 200 + 2));
  EXPECT_DOUBLE_EQ(seconds.compute, kFlops / 1000);
  EXPECT_DOUBLE_EQ(seconds.overlapped(), kFlops / 1000);
  EXPECT_EQ(seconds.overlapped_bound(), StepBound::kCompute);
  EXPECT_NEAR(seconds.serial(), kFlops / 1000 + seconds.network, 1e-9);
  EXPECT_EQ(step_seconds(fully_sharded(), hardware(1e9), ring(1)).overlapped_bound(), StepBound::kNetwork);
}

TEST(StepCost, FindsTheBatchAtWhichBoundsCross) {
  const double network = 6 * (512 * 3.0 / 4 / 200 + 2);
  expect_regimes(step_regimes(fully_sharded(), hardware(1000), ring(1), true),
                 {{StepBound::kNetwork, 0, network / (kFlops / 1000)},
                  {StepBound::kCompute, network / (kFlops / 1000), INFINITY}});
}

TEST(StepCost, FindsCrossingsOnTheCorrectSegmentOfACurve) {
  // Two all-reduces of 16 bytes a token. Below 400 bytes recursive doubling is faster, 2 s + 2 V / 100; from there on
  // halving and doubling, 4 s + 1.5 V / 100. 768 FLOPs a token.
  const StepWork work = tensor_parallel();
  const auto tokens = [&](double peak) {
    const std::vector<StepRegime> regimes = step_regimes(work, hardware(peak), behind_switch(1), true);
    EXPECT_EQ(regimes.front().bound, StepBound::kNetwork);
    return regimes.front().end * 64;
  };
  EXPECT_NEAR(tokens(500), 2 * 2 / (768.0 / 500 - 2 * 0.32), 1e-9);    // 4.46 tokens, 71 bytes
  EXPECT_NEAR(tokens(1000), 2 * 4 / (768.0 / 1000 - 2 * 0.24), 1e-9);  // 27.8 tokens, 444 bytes
  EXPECT_EQ(tokens(2000), INFINITY);                                   // bytes grow faster than FLOPs are done
}

TEST(StepCost, FindsCrossingsForTheSlowestKindOfGroup) {
  // Two all-reduces of 16 bytes a token: in one kind of group 2 s each and next to nothing a byte, in the other 2.4 s a
  // token each. 768 FLOPs a token.
  StepNetwork network = network_of(SwitchGroup{4, 1e6, {0, 1}});
  network.groups[1].push_back(NodeGroup{SwitchGroup{4, 10, {0, 0}}, 1, 0, {}});
  const StepWork work = tensor_parallel();
  const std::vector<StepRegime> never = step_regimes(work, hardware(768), network, true);  // 1 s a token
  ASSERT_EQ(never.size(), 1U);
  EXPECT_EQ(never[0].bound, StepBound::kNetwork);
  const std::vector<StepRegime> once = step_regimes(work, hardware(768.0 / 5), network, true);  // 5 s a token
  ASSERT_EQ(once.size(), 2U);
  EXPECT_NEAR(once[0].end * 64, 4 / (5 - 2 * 2 * 16 / 1e6), 1e-9);
  const std::vector<StepRegime> later = step_regimes(work, hardware(768.0 / 4.81), network, true);
  ASSERT_EQ(later.size(), 2U);
  EXPECT_NEAR(later[0].end * 64, 4 / (4.81 - 2 * 2 * 16 / 1e6), 1e-9);
}

TEST(StepCost, BoundsSmallBatchesByMemory) {
  // Per product: the matrix, and per token of a device (8 + 32) * 2 bytes and 512 FLOPs; six of them. The update reads
  // a gradient and reads and writes parameters and state.
  const StepWork work = fully_sharded();
  const double fixed = 6 * 512 + 2 * (512 + 2 * 2048 + 2 * 512) / 4;
  const double bytes_at_one = fixed + 6 * 16 * 80;
  const StepSeconds seconds = step_seconds(work, hardware(1000, 100), ring(0));
  EXPECT_DOUBLE_EQ(seconds.memory, bytes_at_one / 100);
  const std::vector<StepRegime> regimes = step_regimes(work, hardware(10, 10), ring(0), true);
  ASSERT_EQ(regimes.size(), 2U);
  EXPECT_EQ(regimes[0].bound, StepBound::kMemory);
  EXPECT_DOUBLE_EQ(regimes[0].end, (fixed / 10) / (kFlops / 10 - 6 * 16 * 80 / 10.0));
}

TEST(StepCost, LimitsEachProductSeparatelyWithoutOverlap) {
  const StepWork work = fully_sharded();
  const StepSeconds seconds = step_seconds(work, hardware(10, 10), ring(1));
  EXPECT_DOUBLE_EQ(seconds.device, kFlops / 10 + (512 + 2 * 2048 + 2 * 512) * 2 / 4 / 10.0);
  EXPECT_EQ(seconds.serial_bound(), StepBound::kCompute);
  const std::vector<StepRegime> regimes = step_regimes(work, hardware(1000), ring(1), false);
  ASSERT_EQ(regimes.size(), 2U);
  EXPECT_EQ(regimes[0].bound, StepBound::kNetwork);
  EXPECT_NEAR(regimes[0].end, 6 * (512 * 3.0 / 4 / 200 + 2) / (kFlops / 1000), 1e-12);
}

TEST(StepCost, UsesTheSlowestGroup) {
  StepNetwork network = ring(1);
  network.groups[1].push_back(NodeGroup{TorusGroup{{{4, false, 1}}, 100, {0, 1}}, 1, 0, {}});  // a line
  EXPECT_DOUBLE_EQ(step_seconds(fully_sharded(), hardware(1000), network).network, 6 * (512 * 3.0 / 4 / 100 + 3));
}

TEST(StepCost, FindsTheLargestBatchThatFits) {
  StepMemory memory;
  memory.parameters = {100, 0};
  memory.activations = {0, 10};
  memory.working = {{0, 5}, {40, 0}};
  EXPECT_DOUBLE_EQ(largest_step_scale(memory, 160), 2);   // 100 + 20 + 40
  EXPECT_DOUBLE_EQ(largest_step_scale(memory, 400), 20);  // 100 + 200 + 100
  EXPECT_LT(largest_step_scale(memory, 120), 0);
  EXPECT_EQ(memory.at(20), 400);
  StepMemory fixed;
  fixed.parameters = {100, 0};
  EXPECT_EQ(largest_step_scale(fixed, 100), INFINITY);
  EXPECT_LT(largest_step_scale(fixed, 99), 0);
}

TEST(StepCost, UsesTheShareOfOneDevice) {
  const ClusterRef cluster = made_cluster(NetworkKind::kTorus, {4}, {true});
  EXPECT_THROW(device_rates(*cluster, kPlanStep), Unavailable);
  ClusterParts parts = cluster->parts();
  parts.chip.devices_per_chip = 2;
  parts.chip.memory_bytes = SourcedNumber{1000, "given"};
  parts.chip.memory_bandwidth = SourcedNumber{50, "given"};
  parts.chip.peak_flops[static_cast<size_t>(MatmulFormat::kInt8)] = SourcedNumber{80, "given"};
  const DeviceRates made = device_rates(*Cluster::make(std::move(parts)), kPlanStep);
  EXPECT_EQ(made.memory_bytes, 500);
  EXPECT_EQ(made.memory_bandwidth, 25);
  EXPECT_EQ(made.peak_flops[static_cast<size_t>(MatmulFormat::kInt8)], 40);
  EXPECT_THROW(step_seconds(fully_sharded(), made, ring(1)), Unavailable);  // no bfloat16
  EXPECT_THROW(step_seconds(fully_sharded(), hardware(1000), {{4}, {{}, {}}}), Unavailable);
}

TEST(StepCost, FindsBothCrossingsOfAScaledCollective) {
  // An all-reduce of a byte a unit of scale: 2 s + 2 V / 100, from 400 bytes on 4 s + 1.5 V / 100. The update takes
  // 2.5 s + 1.75 V / 100, between the two: they meet at 200 bytes and at 600. At scale 0 the all-reduce has no bytes.
  StepWork work;
  work.collectives = {{.kind = CollectiveOp::kAllReduce, .axes = 1, .group = 4, .bytes = {0, 1}}};
  work.update_bytes = {2.5, 0.0175};
  for (const bool overlaps : {true, false}) {
    const std::vector<StepRegime> found = step_regimes(work, hardware(1, 1), behind_switch(1), overlaps);
    ASSERT_EQ(found.size(), 3U);
    EXPECT_EQ(found[0].bound, StepBound::kMemory);
    EXPECT_NEAR(found[0].end, 200, 1e-9);
    EXPECT_EQ(found[1].bound, StepBound::kNetwork);
    EXPECT_NEAR(found[1].end, 600, 1e-9);
    EXPECT_EQ(found[2].bound, StepBound::kMemory);
  }
  EXPECT_DOUBLE_EQ(step_seconds(work, hardware(1, 1), behind_switch(1), 0).network, 2);
}

}  // namespace
}  // namespace artifex_devices::planner
