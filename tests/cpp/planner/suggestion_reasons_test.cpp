// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/step/suggestion_reasons.h"

#include <gtest/gtest.h>

#include <cmath>

#include "artifex_devices/base/error.h"
#include "made_clusters.h"
#include "step_models.h"

namespace artifex_devices::planner {
namespace {

using Names = std::vector<std::string>;
const Names kNames = {"data"};

/// A plan of one second of products, with collectives of these kinds alone, each of that many seconds, on weights.
PlannedStep plan_with(const std::vector<std::pair<CollectiveOp, double>>& seconds) {
  PlannedStep plan;
  plan.expected.products = 1;
  for (const auto& [kind, each] : seconds) {
    plan.work.collectives.push_back({.tensor = 1, .kind = kind, .axes = 1, .is_parameter = true});
    plan.costs.push_back({.algorithm = "ring", .limit = "links", .latency = 0, .transfer = each});
    plan.expected.weights += each;
  }
  return plan;
}

std::string why_worse_of(const PlannedStep& option, const PlannedStep& before, bool overlaps) {
  const LetterModel model = two_matrices();
  return why_worse({model.model, kNames, option}, {model.model, kNames, before}, overlaps);
}

TEST(SuggestionReasons, ListKindsOfCollectivesByWhatTheyAddOrSave) {
  const PlannedStep none = plan_with({});
  const PlannedStep some = plan_with(
      {{CollectiveOp::kAllToAll, 0.001}, {CollectiveOp::kAllGather, 0.002}, {CollectiveOp::kReduceScatter, 0.004}});
  EXPECT_EQ(why_worse_of(some, none, false),
            "7 ms more: 4 ms more in reduce-scatters of weights over data, 2 ms more in all-gathers of weights over "
            "data");  // two at most
  EXPECT_EQ(why_worse_of(plan_with({{CollectiveOp::kAllReduce, 0.1}}), some, false),
            "93 ms more: 100 ms more in all-reduces of weights over data, 4 ms less in reduce-scatters of weights, "
            "2 ms less in all-gathers of weights");
  const PlannedStep large = plan_with({{CollectiveOp::kAllGather, 0.001}, {CollectiveOp::kAllReduce, 0.01}});
  EXPECT_EQ(why_worse_of(large, none, false),
            "11 ms more: 10 ms more in all-reduces of weights over data");  // nine tenths of both
}

TEST(SuggestionReasons, CompareByTheOtherMeasureWhereTheFirstIsEqual) {
  const PlannedStep before = plan_with({});
  const PlannedStep slower = plan_with({{CollectiveOp::kAllGather, 0.5}});  // hidden behind a second of products
  EXPECT_EQ(why_worse_of(slower, before, true),
            "as fast with overlap, 500 ms more without: 500 ms more in all-gathers of weights over data");
}

TEST(SuggestionReasons, NameWhatNothingHides) {
  const PlannedStep option = plan_with({{CollectiveOp::kAllGather, 3}});
  EXPECT_EQ(why_worse_of(option, plan_with({}), true),
            "2 s more: 2 s more that nothing hides (3 s more in all-gathers of weights over data)");
  PlannedStep slower = option;
  slower.expected.update = 0.5;  // no collective overlaps with it
  EXPECT_EQ(why_worse_of(slower, option, true), "500 ms more: 500 ms more on each device");
}

TEST(SuggestionReasons, CompareMemoryOfEquallyFastPlans) {
  const PlannedStep before = plan_with({});
  PlannedStep larger = before;
  larger.work.memory.optimizer.fixed = 3072;
  larger.work.memory.working.push_back({.fixed = 1024});
  for (const bool overlaps : {true, false}) {
    EXPECT_EQ(why_worse_of(larger, before, overlaps), "as fast; 4.0 KiB more on a device: 3.0 KiB of optimizer");
    for (const PlannedStep* option : {&std::as_const(before), &std::as_const(larger)}) {
      EXPECT_EQ(why_worse_of(before, *option, overlaps),
                "as fast and as large; more axes of the mesh, or more sharded dimensions");
    }
  }
}

TEST(SuggestionReasons, ReportThePartsOfTheFirstPlan) {
  EXPECT_EQ(why_first(plan_with({}), true), "1 s on each device, no collectives");
  EXPECT_EQ(why_first(plan_with({{CollectiveOp::kAllGather, 1.25}}), true),
            "1 s on each device, then 250 ms of collectives that nothing hides (1.25 s in all)");
  EXPECT_EQ(why_first(plan_with({{CollectiveOp::kAllGather, 0.25}}), true),
            "1 s on each device, which hides all 250 ms of collectives");
  EXPECT_EQ(why_first(plan_with({{CollectiveOp::kAllGather, 0.25}}), false),
            "1 s on each device, then 250 ms of collectives");
}

TEST(SuggestionReasons, ReportTheGainOfPlansThatDoNotFit) {
  const PlannedStep best = plan_with({{CollectiveOp::kAllGather, 2}});
  EXPECT_EQ(gain_over(plan_with({{CollectiveOp::kAllGather, 1.5}}), best, true), "500 ms less than 1");
  EXPECT_EQ(
      gain_over(plan_with({{CollectiveOp::kAllGather, 0.25}}), plan_with({{CollectiveOp::kAllGather, 0.5}}), true),
      "250 ms less than 1 without overlap");
  EXPECT_EQ(gain_over(best, best, true), "");
}

TEST(SuggestedNames, DescribeWhatAnAxisShards) {
  StepModel model = two_matrices().model;  // letters b, d, e and f
  model.batch_axes = {0};
  EXPECT_EQ(suggested_names(model, 3, {1, 0, 2, 4}), (Names{"data", "model", "model2"}));
  EXPECT_EQ(suggested_names(model, 2, {2, 0, 2, 0}), (Names{"spare", "data"}));
}

TEST(ExplainSuggestions, PlansWhatTheSearchFound) {
  StepModel model = two_matrices().model;
  model.batch_axes = {0};
  ClusterParts parts = made_cluster(NetworkKind::kTorus, {4}, {true})->parts();
  parts.chip.peak_flops[static_cast<size_t>(MatmulFormat::kBFloat16)] = {1000, "given"};
  parts.chip.memory_bandwidth = {1e6, "given"};
  parts.chip.memory_bytes = {6000, "given"};
  const ClusterRef cluster = Cluster::make(std::move(parts));
  SuggestionSpace space;
  space.meshes = {{{4}, {0, 1, 2, 3}}};
  space.shardable = {0, 1, 2, 3};
  const Suggestions found = suggest_steps(model, *cluster, space, ideal_efficiency());
  const ExplainedSuggestions explained = explain_suggestions(model, *cluster, space, found, ideal_efficiency());
  ASSERT_EQ(explained.options.size(), found.best.size());
  ASSERT_FALSE(explained.options.empty());
  EXPECT_EQ(explained.options[0].plan.expected.overlapped(), found.best[0].expected.overlapped());
  EXPECT_EQ(explained.options[0].reason, why_first(explained.options[0].plan, true));
  EXPECT_FALSE(explained.smallest);
}

TEST(PlanStep, FindsTheLargestBatchAndRefusesInvalidRules) {
  StepModel model = two_matrices().model;
  model.batch_axes = {0};
  ClusterParts parts = made_cluster(NetworkKind::kTorus, {4}, {true})->parts();
  parts.chip.peak_flops[static_cast<size_t>(MatmulFormat::kBFloat16)] = {1000, "given"};
  parts.chip.memory_bandwidth = {1e6, "given"};
  parts.chip.memory_bytes = {1e6, "given"};
  const ClusterRef cluster = Cluster::make(std::move(parts));
  const ClusterMesh mesh{{4}, {0, 1, 2, 3}};
  const PlannedStep plan = plan_step(model, *cluster, mesh, kNames, {1, 0, 0, 0}, ideal_efficiency());
  EXPECT_EQ(std::fmod(plan.largest_batch, 4), 0);
  EXPECT_GE(plan.largest_batch, 64);
  EXPECT_EQ(plan.costs.size(), plan.work.collectives.size());
  EXPECT_THROW(plan_step(model, *cluster, mesh, kNames, {1, 1, 0, 0}, ideal_efficiency()), InvalidArgument);
}

}  // namespace
}  // namespace artifex_devices::planner
