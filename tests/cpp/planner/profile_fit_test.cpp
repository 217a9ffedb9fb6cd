// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "artifex_devices/base/error.h"
#include "artifex_devices/cluster/cluster_presets.h"
#include "artifex_planner/profile/fit.h"
#include "artifex_planner/training/plan.h"

namespace artifex_devices::planner {
namespace {

using enum ProfileKind;

TransformerShape model() {
  return {.name = "model",
          .layers = 32,
          .embed = 4096,
          .mlp = 11008,
          .heads = 32,
          .kv_heads = 8,
          .head_dim = 128,
          .vocab = 32000};
}

TrainingConfig config_of(int64_t nodes, int64_t tensor) {
  TrainingConfig config;
  config.tensor = tensor;
  config.sequence_parallel = tensor > 1;
  config.data = 8 * nodes / tensor;
  config.zero = 1;
  config.batch = 4 * config.data;
  config.sequence = 4096;
  config.recompute = Recompute::kFull;
  return config;
}

void set(Efficiency& efficiency, Factor factor, double value) {
  efficiency.factors[static_cast<size_t>(factor)].value = value;
}

Efficiency truth_of(const Efficiency& start) {
  Efficiency truth = start;
  set(truth, Factor::kMatmul, 0.5);
  set(truth, Factor::kAttentionForward, 0.4);
  set(truth, Factor::kAttentionBackward, 0.3);
  set(truth, Factor::kMemory, 0.7);
  set(truth, Factor::kLinkFraction, 0.6);
  set(truth, Factor::kNvls, 0.6 / start[Factor::kLinkFraction] * start[Factor::kNvls]);  // scaled alike
  set(truth, Factor::kNetwork, 0.45);
  set(truth, Factor::kSharp, 0.45 / start[Factor::kNetwork] * start[Factor::kSharp]);
  return truth;
}

/// A profile of what the plan says.
ProfileParts parts_of(const KindSeconds& seconds) {
  ProfileParts parts;
  parts.busy = parts.alone = seconds.kinds;
  return parts;
}

TEST(ProfileFit, FindsTheFactorsWithWhichKindsWerePriced) {
  const ClusterRef pod = gpu_cluster("h100", 4, {});
  const TrainingConfig config = config_of(4, 8);
  const Efficiency start = published_efficiency(*pod);
  const Efficiency truth = truth_of(start);
  KindPricer pricer(model(), *pod, config, 0);
  ProfileParts parts = parts_of(pricer.seconds(truth));
  parts.idle = 0.25;
  at(parts.busy, kOther) = at(parts.alone, kOther) = 0.125;
  const ProfileFit found = fit_profile(model(), *pod, config, 0, parts, start, "a profile");
  for (const Factor factor : {Factor::kMatmul, Factor::kAttentionForward, Factor::kAttentionBackward, Factor::kMemory,
                              Factor::kLinkFraction, Factor::kNvls, Factor::kNetwork, Factor::kSharp}) {
    EXPECT_NEAR(found.efficiency[factor] / truth[factor], 1, 1e-5) << to_string(factor);
    EXPECT_EQ(found.efficiency.factors[static_cast<size_t>(factor)].source, "a profile");
  }
  // 32 layers of 4 microbatches forward, backward and forward again.
  EXPECT_NEAR(found.efficiency[Factor::kLayerSeconds], 0.25 / (3 * 32 * 4), 1e-12);
  EXPECT_EQ(found.efficiency[Factor::kStepSeconds], 0.125);
  EXPECT_EQ(std::ranges::count(found.fitted, Factor::kMatmulFloat8), 0);
  EXPECT_EQ(std::ranges::count(found.fitted, Factor::kHost), 0);
}

TEST(ProfileFit, KindsSumToThePlanWithoutOverlap) {
  const ClusterRef pod = gpu_cluster("h100", 4, {});
  for (const bool flash : {true, false}) {
    TrainingConfig config = config_of(4, 8);
    config.flash_attention = flash;
    config.overlap = {};
    const Efficiency start = published_efficiency(*pod);
    const KindSeconds kinds = KindPricer(model(), *pod, config, 0).seconds(start);
    const TrainingSeconds step = plan_training(model(), *pod, config, start).expected;
    double sum = 0;
    for (const double seconds : kinds.kinds) sum += seconds;
    // The gather beside the products of the backward pass is hidden in any case.
    double hidden = 0;
    for (const double seconds : step.hidden) hidden += seconds;
    EXPECT_NEAR(sum, step.total() + hidden, 1e-9) << flash;
    EXPECT_EQ(at(kinds.kinds, kAttentionForward) > 0, flash);
  }
}

TEST(ProfileFit, TheOverlapIsThePartThatIsNotAlone) {
  const ClusterRef node = gpu_cluster("h100", 1, {});
  const TrainingConfig config = config_of(1, 1);
  const Efficiency start = published_efficiency(*node);
  ProfileParts parts = parts_of(KindPricer(model(), *node, config, 0).seconds(start));
  at(parts.alone, kReduceScatter) *= 0.25;
  at(parts.alone, kAllGather) *= 0.25;
  const ProfileFit found = fit_profile(model(), *node, config, 0, parts, start, "a profile");
  EXPECT_NEAR(found.overlap[static_cast<size_t>(Traffic::kData)].value(), 0.75, 1e-12);
  EXPECT_FALSE(found.overlap[static_cast<size_t>(Traffic::kExpert)].has_value());
}

TEST(ProfileFit, DifferencesFromThePlanAreNoted) {
  const ClusterRef node = gpu_cluster("h100", 1, {});
  const TrainingConfig config = config_of(1, 1);
  const Efficiency start = published_efficiency(*node);
  ProfileParts parts;
  at(parts.busy, kProducts) = at(parts.alone, kProducts) = 1e-6;  // faster than the peak
  at(parts.busy, kAllToAll) = at(parts.alone, kAllToAll) = 0.5;
  const ProfileFit found = fit_profile(model(), *node, config, 0, parts, start, "a profile");
  EXPECT_EQ(found.efficiency[Factor::kMatmul], 1);
  EXPECT_EQ(found.efficiency[Factor::kMemory], start[Factor::kMemory]);
  const auto has = [&](const std::string& text) {
    return std::ranges::any_of(found.notes, [&](const std::string& note) { return note.starts_with(text); });
  };
  EXPECT_TRUE(has("products: 1e-06 s measured"));
  EXPECT_TRUE(has("attention: no operation of the profile is of this kind"));
  EXPECT_TRUE(has("elementwise: no operation of the profile is of this kind"));
  EXPECT_TRUE(has("all_gather: no operation of the profile is of this kind"));
  EXPECT_TRUE(has("all_to_all: the profile has 0.5 s, the plan none"));
}

TEST(ProfileFit, StagesOfAPipelineKeepTheirFixedSeconds) {
  const ClusterRef node = gpu_cluster("h100", 1, {});
  TrainingConfig config = config_of(1, 1);
  config.pipeline = 2;
  config.data = 4;
  const Efficiency start = published_efficiency(*node);
  for (const int64_t stage : {0, 1}) {
    ProfileParts parts = parts_of(KindPricer(model(), *node, config, stage).seconds(truth_of(start)));
    parts.idle = 1;
    const ProfileFit found = fit_profile(model(), *node, config, stage, parts, start, "a profile");
    EXPECT_NEAR(found.efficiency[Factor::kMatmul], 0.5, 1e-6);
    EXPECT_EQ(found.efficiency[Factor::kLayerSeconds], start[Factor::kLayerSeconds]);
    EXPECT_EQ(std::ranges::count(found.fitted, Factor::kLayerSeconds), 0);
  }
  EXPECT_THROW(fit_profile(model(), *node, config, 2, {}, start, ""), InvalidArgument);
  config.tensor = 3;
  EXPECT_THROW(fit_profile(model(), *node, config, 0, {}, start, ""), InvalidArgument);
}

}  // namespace
}  // namespace artifex_devices::planner
