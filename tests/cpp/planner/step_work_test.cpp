// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "artifex_devices/base/error.h"
#include "artifex_devices/base/interrupt.h"
#include "artifex_planner/step/work.h"
#include "step_models.h"

namespace artifex_devices::planner {
namespace {

using Lines = std::vector<std::string>;
constexpr MeshAxes kX = 1;
constexpr MeshAxes kY = 2;

std::vector<std::string> collectives(const LetterModel& made, const std::vector<int64_t>& sizes,
                                     const std::map<char, MeshAxes>& cuts) {
  return lines_of(step_work(made.model, sizes, made.rules(cuts)), made.model);
}

double flops_of(const StepWork& work) {
  double sum = 0;
  for (const StepProduct& each : work.products) sum += each.flops.at(1);
  return sum;
}

// The algorithms of https://jax-ml.github.io/scaling-book/training, line by line.
TEST(StepWork, CountsTheCollectivesOfDataParallelism) {
  const LetterModel made = two_matrices();
  EXPECT_EQ(collectives(made, {4}, {{'b', kX}}),
            (Lines{"backward all_reduce d w2 over 1: 512", "backward all_reduce d w1 over 1: 512"}));
}

TEST(StepWork, CountsTheCollectivesOfFullyShardedDataParallelism) {
  const LetterModel made = two_matrices();
  EXPECT_EQ(collectives(made, {4}, {{'b', kX}, {'e', kX}}),
            (Lines{"forward all_gather w1 over 1: 512", "forward all_gather w2 over 1: 512",
                   "backward all_gather w2 over 1: 512", "backward reduce_scatter d w2 over 1: 512",
                   "backward all_gather w1 over 1: 512", "backward reduce_scatter d w1 over 1: 512"}));
}

TEST(StepWork, CountsTheCollectivesOfTensorParallelism) {
  const LetterModel made = two_matrices();
  EXPECT_EQ(collectives(made, {4}, {{'d', kX}, {'f', kX}}),
            (Lines{"forward all_gather in over 1: 1024", "forward reduce_scatter out over 1: 1024",
                   "backward all_gather d out over 1: 1024", "backward reduce_scatter d in over 1: 1024",
                   "backward all_gather in over 1: 1024"}));
}

TEST(StepWork, CountsTensorParallelismWithReplicatedActivations) {
  const LetterModel made = two_matrices();
  EXPECT_EQ(collectives(made, {4}, {{'f', kX}}),
            (Lines{"forward all_reduce out over 1: 1024", "backward all_reduce d in over 1: 1024"}));
}

TEST(StepWork, CombinesDataAndTensorParallelism) {
  const LetterModel made = two_matrices();
  EXPECT_EQ(collectives(made, {4, 2}, {{'b', kX}, {'e', kX}, {'d', kY}, {'f', kY}}),
            (Lines{"forward all_gather in over 2: 256", "forward all_gather w1 over 1: 256",
                   "forward all_gather w2 over 1: 256", "forward reduce_scatter out over 2: 256",
                   "backward all_gather d out over 2: 256", "backward all_gather w2 over 1: 256",
                   "backward reduce_scatter d w2 over 1: 256", "backward all_gather w1 over 1: 256",
                   "backward reduce_scatter d in over 2: 256", "backward all_gather in over 2: 256",
                   "backward reduce_scatter d w1 over 1: 256"}));
}

TEST(StepWork, ScattersThenReducesGradientsOverTwoAxes) {
  const LetterModel made = two_matrices();
  EXPECT_EQ(collectives(made, {4, 2}, {{'b', kX | kY}, {'e', kX}}),
            (Lines{"forward all_gather w1 over 1: 512", "forward all_gather w2 over 1: 512",
                   "backward all_gather w2 over 1: 512", "backward reduce_scatter d w2 over 1: 512",
                   "backward all_reduce d w2 over 2: 128", "backward all_gather w1 over 1: 512",
                   "backward reduce_scatter d w1 over 1: 512", "backward all_reduce d w1 over 2: 128"}));
}

TEST(StepWork, MovesNothingOverAxesOfOneDevice) {
  const LetterModel made = two_matrices();
  EXPECT_TRUE(collectives(made, {1, 1}, {{'b', kX}, {'e', kX}, {'d', kY}, {'f', kY}}).empty());
}

TEST(StepWork, OmitsTheBackwardPassOfAForwardStep) {
  LetterModel made = two_matrices();
  made.model.is_training = false;
  EXPECT_EQ(collectives(made, {4}, {{'b', kX}, {'e', kX}}),
            (Lines{"forward all_gather w1 over 1: 512", "forward all_gather w2 over 1: 512"}));
  EXPECT_EQ(flops_of(step_work(made.model, {4}, made.rules({{'b', kX}}))), 2.0 * (2 * 64 * 8 * 32) / 4);
}

TEST(StepWork, GathersSharedOperandsOncePerPass) {
  LetterModel made({{'b', 64}, {'d', 8}, {'f', 32}, {'g', 16}});
  made.tensor("x", "bd").tensor("w1", "df", StepRole::kParameter).tensor("w2", "dg", StepRole::kParameter);
  made.tensor("y", "bf").tensor("z", "bg").matmul("x", "w1", "y").matmul("x", "w2", "z");
  made.model.ops[1].count = 5;
  made.model.tensors[0].axes[1] = 0;  // no letter's axis but b's: x is sharded along d by hand
  made.model.logical_axes.emplace_back("x's d");
  made.model.tensors[0].axes[1] = 4;
  StepRules rules = made.rules({{'f', kX}, {'g', kX}});
  rules[4] = kX;
  EXPECT_EQ(lines_of(step_work(made.model, {4}, rules), made.model),
            (Lines{"forward all_gather x over 1: 1024 x 5", "backward reduce_scatter d x over 1: 1024 x 5",
                   "backward all_gather x over 1: 1024 x 5"}));
}

TEST(StepWork, SharesGathersBetweenRecomputationAndBackwardPass) {
  LetterModel made = two_matrices();
  made.model.ops[0].is_recomputed = true;
  EXPECT_EQ(collectives(made, {4}, {{'b', kX}, {'e', kX}}),
            (Lines{"forward all_gather w1 over 1: 512", "forward all_gather w2 over 1: 512",
                   "backward all_gather w2 over 1: 512", "backward reduce_scatter d w2 over 1: 512",
                   "backward all_gather w1 over 1: 512", "backward reduce_scatter d w1 over 1: 512"}));
  EXPECT_EQ(flops_of(step_work(made.model, {4}, made.rules({{'b', kX}}))), 7.0 * (2 * 64 * 8 * 32) / 4);
}

TEST(StepWork, ShardsOrGathersTheTableOfALookup) {
  LetterModel made({{'b', 64}, {'v', 128}, {'d', 8}});
  made.tensor("table", "vd", StepRole::kParameter).tensor("rows", "bd");
  made.op(StepOpKind::kLookup, "table", "", "rows");
  EXPECT_EQ(collectives(made, {4}, {{'v', kX}}), (Lines{"forward all_reduce rows over 1: 1024"}));
  EXPECT_EQ(collectives(made, {4}, {{'b', kX}}), (Lines{"backward all_reduce d table over 1: 2048"}));
  // Both: the table is the larger, so that rows move.
  EXPECT_EQ(collectives(made, {4}, {{'v', kX}, {'b', kX}}),
            (Lines{"forward reduce_scatter rows over 1: 1024", "backward all_gather d rows over 1: 1024"}));
  EXPECT_TRUE(step_work(made.model, {4}, made.rules({})).products.empty());  // no FLOPs
}

TEST(StepWork, RoutesTokensToExpertsAndBack) {
  // 64 tokens, each to 2 of 4 experts: 32 places each. b of the experts' side is the part of the batch.
  LetterModel made({{'b', 64}, {'c', 32}, {'d', 8}, {'x', 4}});
  made.tensor("tokens", "bd").tensor("placed", "xcd", StepRole::kActivation, 'c').tensor("back", "bd");
  made.op(StepOpKind::kRoute, "tokens", "", "placed").op(StepOpKind::kRoute, "placed", "", "back");
  made.model.ops[0].indices[2][1] = made.model.ops[0].indices[0][0];
  made.model.ops[1].indices[0][1] = made.model.ops[1].indices[2][0];
  // 4 * 32 * 8 * 2 bytes are placed; X cuts them, so that each group of Y moves half.
  EXPECT_EQ(collectives(made, {2, 2}, {{'b', kX | kY}, {'c', kX}, {'x', kY}}),
            (Lines{"forward all_to_all placed over 2: 1024", "forward all_to_all back over 2: 1024",
                   "backward all_to_all d placed over 2: 1024", "backward all_to_all d tokens over 2: 1024"}));
  EXPECT_EQ(collectives(made, {2}, {{'b', kX}}),
            (Lines{"forward all_gather placed over 1: 2048", "backward all_gather d placed over 1: 2048"}));
}

TEST(StepWork, CountsTheMemoryOfEachDevice) {
  LetterModel made = two_matrices();
  made.model.tensors[4].is_kept = false;
  const StepWork work = step_work(made.model, {4, 2}, made.rules({{'b', kX}, {'e', kX}, {'d', kY}, {'f', kY}}));
  EXPECT_EQ(work.memory.parameters, (BatchAmount{2 * 512 / 8, 0}));
  EXPECT_EQ(work.memory.gradients, (BatchAmount{2 * 512 / 8, 0}));
  EXPECT_EQ(work.memory.optimizer, (BatchAmount{2 * 256 * 8 / 8, 0}));
  EXPECT_EQ(work.memory.activations, (BatchAmount{0, (1024 + 4096) / 8}));
  // Of dW1 = In^T dTmp: In gathered over Y, dTmp, and dW1 before it is scattered.
  EXPECT_EQ(work.memory.working.back(), (BatchAmount{256, 256 + 512}));
  EXPECT_EQ(work.update_bytes, (BatchAmount{128 + 2 * 512 + 2 * 128, 0}));
  made.model.holds_gradients = false;
  made.model.gradient_itemsize = 4;
  const StepWork other = step_work(made.model, {4, 2}, made.rules({{'b', kX}}));
  EXPECT_EQ(other.memory.gradients, BatchAmount{});
  EXPECT_EQ(lines_of(other, made.model),
            (Lines{"backward all_reduce d w2 over 1: 1024", "backward all_reduce d w1 over 1: 1024"}));
}

TEST(StepWork, CountsFourBitElementsAsHalfAByte) {
  LetterModel made = two_matrices();
  for (StepTensor& tensor : made.model.tensors) tensor.itemsize = 0.5;
  made.model.gradient_itemsize = 0.25;
  const StepWork work = step_work(made.model, {4, 2}, made.rules({{'b', kX}}));
  EXPECT_EQ(work.memory.parameters, (BatchAmount{512 / 2, 0}));  // two matrices of 8 x 32
  EXPECT_EQ(work.memory.gradients, (BatchAmount{512 / 4, 0}));
  EXPECT_EQ(lines_of(work, made.model),
            (Lines{"backward all_reduce d w2 over 1: 64", "backward all_reduce d w1 over 1: 64"}));
}

TEST(StepWork, WorkIsShardedWhereAnyArrayIs) {
  const LetterModel made = two_matrices();
  const auto flops = [&](const std::map<char, MeshAxes>& cuts) {
    return flops_of(step_work(made.model, {4, 2}, made.rules(cuts)));
  };
  constexpr double kAll = 6.0 * (2 * 64 * 8 * 32);
  EXPECT_EQ(flops({}), kAll);
  EXPECT_EQ(flops({{'b', kX}, {'e', kX}}), kAll / 4);
  EXPECT_EQ(flops({{'b', kX}, {'e', kX}, {'f', kY}}), kAll / 8);
}

TEST(StepWork, ReportsEveryMismatch) {
  const LetterModel made = two_matrices();
  const StepRules rules = made.rules({{'b', kX | kY}, {'e', kX}, {'f', kX}});
  EXPECT_EQ(step_mismatches(made.model, {3, 4}, {"x", "y"}, rules),
            (Lines{"b (64 in in and 2 other tensors) is sharded 12 ways over x, y; nearest 60 or 72",
                   "e (8 in w1 and 1 other tensor) is sharded 3 ways over x; nearest 6 or 9",
                   "f (32 in w1 and 2 other tensors) is sharded 3 ways over x; nearest 30 or 33",
                   "x shards both e and f of w1 and 1 other tensor", "x shards both b and f of tmp"}));
  EXPECT_FALSE(step_fits_mesh(made.model, {3, 4}, rules));
  EXPECT_THROW(step_work(made.model, {3, 4}, rules), InvalidArgument);
  EXPECT_TRUE(step_fits_mesh(made.model, {4, 2}, made.rules({{'b', kX}, {'f', kY}})));
}

TEST(StepWork, RefusesInvalidModels) {
  LetterModel made = two_matrices();
  EXPECT_THROW(step_work(made.model, {4}, StepRules{}), InvalidArgument);
  EXPECT_THROW(step_work(made.model, std::vector<int64_t>(9, 1), made.rules({})), InvalidArgument);
  made.model.ops[0].indices[0].pop_back();
  EXPECT_THROW(step_work(made.model, {4}, made.rules({})), InvalidArgument);
}

TEST(StepWork, SeparatesAllToAllsToDifferentDimensions) {
  LetterModel made(
      {{'b', 4}, {'c', 4}, {'d', 4}, {'e', 4}, {'f', 4}, {'g', 4}, {'h', 4}, {'i', 4}, {'j', 4}, {'o', 1}});
  made.model.is_training = false;
  made.tensor("x", "bcd", StepRole::kGiven).tensor("s", "o", StepRole::kGiven);
  made.tensor("y", "efg").tensor("z", "hij").tensor("again", "efg");
  for (const char* output : {"y", "z", "again"}) made.op(StepOpKind::kElementwise, "x", "s", output);
  for (StepOp& op : made.model.ops) op.indices[2] = op.indices[0];
  EXPECT_EQ(collectives(made, {4}, {{'b', kX}, {'f', kX}, {'j', kX}}),
            (Lines{"forward all_to_all x over 1: 128", "forward all_to_all x over 1: 128"}));
  EXPECT_EQ(collectives(made, {4}, {{'b', kX}, {'f', kX}, {'i', kX}}), (Lines{"forward all_to_all x over 1: 128"}));
}

TEST(StepWork, SeparatesAllToAllsOfResultsAndOperands) {
  // y is computed sharded over its first dimension, stored sharded over its second, and used sharded over its first.
  LetterModel made({{'b', 4}, {'d', 4}, {'e', 4}, {'f', 4}, {'g', 4}, {'h', 4}, {'o', 1}});
  made.model.is_training = false;
  made.tensor("x", "bd", StepRole::kGiven).tensor("x2", "bd", StepRole::kGiven).tensor("s", "o", StepRole::kGiven);
  made.tensor("y", "ef").tensor("z", "gh");
  made.op(StepOpKind::kElementwise, "x", "x2", "y").op(StepOpKind::kElementwise, "y", "s", "z");
  for (StepOp& op : made.model.ops) op.indices[2] = op.indices[0];
  EXPECT_EQ(collectives(made, {4}, {{'b', kX}, {'f', kX}, {'g', kX}}),
            (Lines{"forward all_to_all y over 1: 32", "forward all_to_all y over 1: 32"}));
}

TEST(StepWork, PollsForInterrupts) {
  const LetterModel made = two_matrices();
  set_interrupt_hook([] { return true; });
  EXPECT_THROW(step_work(made.model, {4}, made.rules({{'b', kX}})), Interrupted);
  set_interrupt_hook(nullptr);
}

}  // namespace
}  // namespace artifex_devices::planner
