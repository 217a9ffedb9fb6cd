// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/step/suggestion.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "artifex_devices/base/error.h"
#include "artifex_devices/base/interrupt.h"
#include "artifex_planner/step/axis_choices.h"
#include "made_clusters.h"

namespace artifex_devices::planner {
namespace {

/// In[batch, embed] * W[width, mlp] -> Out[batch, mlp], of sizes 8, 12 and 16; elements have two bytes.
StepModel one_product() {
  StepModel model;
  model.logical_axes = {"batch", "embed", "width", "mlp"};
  model.tokens = 8;
  model.is_training = false;
  model.tensors = {
      {.name = "in", .shape = Dims{8, 12}, .axes = {0, 1}, .role = StepRole::kGiven, .scales = true},
      {.name = "w", .shape = Dims{12, 16}, .axes = {2, 3}, .role = StepRole::kParameter},
      {.name = "out", .shape = Dims{8, 16}, .axes = {0, 3}, .scales = true},
  };
  model.ops = {{.name = "product",
                .inputs = {0, 1},
                .output = 2,
                .indices = {std::vector<int>{0, 1}, std::vector<int>{1, 2}, std::vector<int>{0, 2}}}};
  return model;
}

ClusterRef ring_of(int chips, double memory_bytes) {
  ClusterParts parts = made_cluster(NetworkKind::kTorus, {chips}, {true})->parts();
  parts.chip.peak_flops[static_cast<size_t>(MatmulFormat::kBFloat16)] = SourcedNumber{1000, "given"};
  parts.chip.memory_bandwidth = SourcedNumber{1e6, "given"};
  parts.chip.memory_bytes = SourcedNumber{memory_bytes, "given"};
  return Cluster::make(std::move(parts));
}

SuggestionSpace space_of(int64_t devices, int most_axes, std::vector<int> shardable = {0, 1, 2, 3}) {
  SuggestionSpace space;
  space.shardable = std::move(shardable);
  space.top = 3;
  for (const auto& sizes : mesh_shapes(devices, most_axes)) {
    std::vector<int64_t> ids(static_cast<size_t>(devices));
    std::iota(ids.begin(), ids.end(), int64_t{0});
    space.meshes.push_back({sizes, ids});
  }
  return space;
}

TEST(MeshShapes, ListEveryOrderedFactorization) {
  using Shapes = std::vector<std::vector<int64_t>>;
  EXPECT_EQ(mesh_shapes(12, 2), (Shapes{{12}, {2, 6}, {3, 4}, {4, 3}, {6, 2}}));
  EXPECT_EQ(mesh_shapes(8, 3), (Shapes{{8}, {2, 4}, {4, 2}, {2, 2, 2}}));
  EXPECT_EQ(mesh_shapes(7, 3), (Shapes{{7}}));
  EXPECT_EQ(mesh_shapes(1, 2), (Shapes{{1}}));
  EXPECT_EQ(mesh_shapes(1 << 20, 3).size(), 1U + 19U + 19U * 18U / 2U);
  EXPECT_THROW(mesh_shapes(0, 1), InvalidArgument);
  EXPECT_THROW(mesh_shapes(4, 9), InvalidArgument);
}

TEST(Suggestions, ShardWhatNeedsNoCollectives) {
  const StepModel model = one_product();
  const ClusterRef ring = ring_of(4, 1e6);
  const Suggestions found = suggest_steps(model, *ring, space_of(4, 1), ideal_efficiency());
  // One axis may cut nothing, one of the four, or one of in's and one of w's that are not both out's.
  EXPECT_EQ(found.possible, 8);
  ASSERT_EQ(found.best.size(), 3U);
  // Equally fast, w whole or in whole: the smaller first.
  EXPECT_EQ(found.best[0].rules, (StepRules{0, 0, 0, 1}));
  EXPECT_EQ(found.best[1].rules, (StepRules{1, 0, 0, 0}));
  EXPECT_EQ(found.best[0].memory_bytes, 2 * (8 * 12 + 12 * 16 / 4 + 8 * 16 / 4));
  EXPECT_EQ(found.best[1].memory_bytes, 2 * (8 * 12 / 4 + 12 * 16 + 8 * 16 / 4));
  for (const size_t place : {size_t{0}, size_t{1}}) {
    EXPECT_EQ(found.best[place].expected.network(), 0);
    EXPECT_EQ(found.best[place].expected.products, 2 * 8 * 12 * 16 / 4 / 1000.0);
  }
}

TEST(Suggestions, AreTheBestPlansThatFit) {
  const StepModel model = one_product();
  Efficiency factors = ideal_efficiency();
  for (const Factor each : {Factor::kMatmul, Factor::kMemory, Factor::kLinkFraction}) {
    factors.factors[static_cast<size_t>(each)].value = 0.5;
  }
  factors.factors[static_cast<size_t>(Factor::kLinksHalfBytes)].value = 100;
  for (const bool overlaps : {true, false}) {
    for (const double memory : {1e6, 250.0, 170.0}) {
      const ClusterRef ring = ring_of(12, memory);
      SuggestionSpace space = space_of(12, 2);
      space.overlaps = overlaps;
      const Suggestions found = suggest_steps(model, *ring, space, factors);
      double best = 1e9;
      double least_memory = 1e9;
      int64_t priced = 0;
      int64_t too_large = 0;
      for (const ClusterMesh& mesh : space.meshes) {
        const MeshAxes sets = MeshAxes{1} << mesh.sizes.size();
        for (MeshAxes number = 0; number < sets * sets * sets * sets; ++number) {
          const StepRules rules = {number % sets, number / sets % sets, number / sets / sets % sets,
                                   number / sets / sets / sets};
          if (!step_fits_mesh(model, mesh.sizes, rules)) continue;
          const StepWork work = step_work(model, mesh.sizes, rules);
          std::vector<MeshAxes> wanted;
          for (const StepCollective& each : work.collectives) wanted.push_back(each.axes);
          const ExpectedStep step = expected_step(work, device_rates(*ring, kPlanStep),
                                                  step_network(*ring, mesh.sizes, mesh.devices, wanted), factors);
          ++priced;
          least_memory = std::min(least_memory, work.memory.at(1));
          if (work.memory.at(1) > memory) {
            ++too_large;
          } else {
            best = std::min(best, overlaps ? step.overlapped() : step.serial());
          }
        }
      }
      EXPECT_EQ(found.possible, priced);
      EXPECT_EQ(found.too_large, too_large);
      ASSERT_TRUE(found.smallest);
      EXPECT_EQ(found.smallest->memory_bytes, least_memory);
      EXPECT_EQ(found.best.empty(), priced == too_large);
      EXPECT_EQ(found.fastest_too_large.has_value(), too_large > 0);
      if (!found.best.empty()) {
        EXPECT_EQ(overlaps ? found.best[0].expected.overlapped() : found.best[0].expected.serial(), best);
      }
    }
  }
}

TEST(Suggestions, NameTheLargestBatchThatFitsWhereNothingDoes) {
  StepModel model = one_product();
  model.batch_axes = {0};
  // One device of 500 bytes, without rules: 384 of w, and 2 * (12 + 16) for each row of in and out.
  EXPECT_EQ(suggest_steps(model, *ring_of(1, 500), space_of(1, 1), ideal_efficiency()).largest_batch, 2);
  EXPECT_EQ(suggest_steps(model, *ring_of(1, 400), space_of(1, 1), ideal_efficiency()).largest_batch, 0);
  EXPECT_EQ(suggest_steps(model, *ring_of(1, 1e6), space_of(1, 1), ideal_efficiency()).largest_batch, 0);  // all fits
  // Four devices of 240 bytes, mlp sharded: 96 of w, 24 and 8 for each row of in and out.
  EXPECT_EQ(suggest_steps(model, *ring_of(4, 240), space_of(4, 1, {3}), ideal_efficiency()).largest_batch, 4);
}

TEST(Suggestions, CountUnpricedPlansAndSkipEquivalentMeshes) {
  const StepModel model = one_product();
  const ClusterRef ring = ring_of(8, 1e6);
  const Suggestions found = suggest_steps(model, *ring, space_of(8, 3), ideal_efficiency());
  // The first and the last axis of 2 x 2 x 2 together: devices 0, 1, 4 and 5 of a ring.
  EXPECT_GT(found.without_network, 0);
  // Batch into 2 and mlp into 4 parts; then mlp into 8, on the mesh of one axis; then batch into 4 and mlp into 2.
  ASSERT_EQ(found.best.size(), 3U);
  EXPECT_EQ(found.best[0].mesh, 1U);
  EXPECT_EQ(found.best[0].rules, (StepRules{1, 0, 0, 2}));
  EXPECT_EQ(found.best[1].mesh, 0U);
  EXPECT_EQ(found.best[1].rules, (StepRules{0, 0, 0, 1}));
  EXPECT_EQ(found.best[2].mesh, 1U);
  EXPECT_EQ(found.best[2].rules, (StepRules{2, 0, 0, 1}));
}

TEST(Suggestions, ReportProgressAndRefuseSearchesOfDays) {
  const StepModel model = one_product();
  const ClusterRef ring = ring_of(8, 1e6);
  const SuggestionSpace space = space_of(8, 3);
  std::vector<int64_t> reports;
  suggest_steps(model, *ring, space, ideal_efficiency(), [&](int64_t done) { reports.push_back(done); });
  EXPECT_EQ(reports, (std::vector<int64_t>{0}));
  // An axis of 2 or 4 may cut 8 sets; 12 does not divide by 8: an axis of 8 may cut nothing, batch or mlp. 2 x 4 and 4
  // x 2 are looked at together.
  EXPECT_EQ(count_of_candidates(model, space), 3 + 64 + 512);

  StepModel many = model;
  for (int i = 0; i < 18; ++i) {
    many.logical_axes.push_back("more");
    many.tensors.push_back({.name = "t", .shape = Dims{8}, .axes = {4 + i}});
  }
  std::vector<int> all(many.logical_axes.size());
  std::iota(all.begin(), all.end(), 0);
  EXPECT_THROW(suggest_steps(many, *ring, space_of(8, 2, all), ideal_efficiency()), InvalidArgument);
}

TEST(Suggestions, ReportAndPollForInterruptsByWork) {
  static int64_t asked = 0;
  asked = 0;
  set_interrupt_hook([] { return ++asked < 0; });
  StepModel model = one_product();
  model.ops.resize(40'000, model.ops[0]);
  const ClusterRef ring = ring_of(4, 1e6);
  const SuggestionSpace space = space_of(4, 1);
  std::vector<int64_t> reports;
  suggest_steps(model, *ring, space, ideal_efficiency(), [&](int64_t done) { reports.push_back(done); });
  set_interrupt_hook(nullptr);
  // 80,000 operations each: a report before every candidate.
  EXPECT_EQ(reports, (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_GT(asked, 8 * 40'000 / 256);
}

TEST(Suggestions, CountPlansBeforeListingThem) {
  // Twenty axes that any set may be cut of: 2^20 sets for each axis of a mesh.
  StepModel model;
  for (int i = 0; i < 20; ++i) {
    model.logical_axes.push_back("a");
    model.tensors.push_back({.name = "t", .shape = Dims{4096}, .axes = {i}});
  }
  std::vector<int> all(20);
  std::iota(all.begin(), all.end(), 0);
  const double sets = 1 << 20;
  EXPECT_EQ(count_of_candidates(model, space_of(4, 2, all)), static_cast<int64_t>(sets + sets * sets));
  EXPECT_EQ(count_of_candidates(model, space_of(16, 4, all)), int64_t{1'000'000'000'000'000'000});
  EXPECT_THROW(suggest_steps(model, *ring_of(4, 1e6), space_of(4, 2, all), ideal_efficiency()), InvalidArgument);

  const AxisChoices cuts(model, all);
  EXPECT_EQ(cuts.count_for_size(2), 1 << 20);
  EXPECT_EQ(cuts.count_for_size(3), 1);
  EXPECT_EQ(cuts.count_for_size(1), 1);
  EXPECT_EQ(cuts.for_size(3), (std::vector<AxisSet>{0}));
  set_interrupt_hook([] { return true; });
  EXPECT_THROW(count_of_candidates(model, space_of(4, 1, all)), Interrupted);
  set_interrupt_hook(nullptr);
}

TEST(Suggestions, AreNamedByErrors) {
  ClusterParts parts = ring_of(4, 1e6)->parts();
  parts.chip.peak_flops[static_cast<size_t>(MatmulFormat::kBFloat16)].reset();
  const ClusterRef slow = Cluster::make(parts);
  parts.chip.memory_bandwidth.reset();
  const ClusterRef unknown = Cluster::make(std::move(parts));
  for (const ClusterRef& cluster : {slow, unknown}) {
    try {
      suggest_steps(one_product(), *cluster, space_of(4, 1), ideal_efficiency());
      FAIL();
    } catch (const Unavailable& error) {
      EXPECT_TRUE(std::string_view(error.what()).starts_with("suggest: ")) << error.what();
    }
  }
}

}  // namespace
}  // namespace artifex_devices::planner
