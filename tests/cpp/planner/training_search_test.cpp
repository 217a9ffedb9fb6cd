// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "../base/message_of.h"
#include "artifex_devices/base/error.h"
#include "artifex_devices/cluster/cluster_presets.h"
#include "artifex_planner/training/plan.h"
#include "artifex_planner/training/search.h"

namespace artifex_devices::planner {
namespace {

TransformerShape small_shape() {
  TransformerShape shape;
  shape.name = "gpt";
  shape.layers = 24;
  shape.embed = 2048;
  shape.mlp = 8192;
  shape.heads = shape.kv_heads = 16;
  shape.head_dim = 128;
  shape.vocab = 51200;
  shape.gated_mlp = false;
  shape.tied_embeddings = true;
  return shape;
}

TrainingSpace small_space() {
  TrainingSpace space;
  space.base.batch = 64;
  space.base.sequence = 2048;
  space.base.dropout = true;
  space.devices = {16};
  space.tensor = {1, 2, 4, 8};
  space.context = {1, 2};
  space.context_method = {{ContextMethod::kRing, 1}, {ContextMethod::kAllToAll, 0}};
  space.pipeline = {1, 2, 4};
  space.chunks = {1, 2};
  space.expert = {1};
  space.microbatch = {1, 2, 4};
  space.zero_shards = {0, 8};
  space.zero = {0, 1, 3};
  space.optimizer = {TrainingOptimizer::kAdamMaster, TrainingOptimizer::kAdam};
  space.recompute = {Recompute::kNone, Recompute::kFull};
  space.recompute_parts = {0.5, 1};
  space.offload_optimizer = space.offload_activations = {false, true};
  space.memory_limit = 12e9;
  space.top = 3;
  return space;
}

using Numbers = std::tuple<double, int64_t>;  // seconds and bytes

/// Each combination of small_space(), planned alone.
std::vector<Numbers> all_fitting(const Cluster& cluster, const Efficiency& efficiency) {
  const TrainingSpace space = small_space();
  std::vector<Numbers> found;
  for (const bool has_host_states : {false, true}) {
    for (const bool has_host_activations : {false, true}) {
      visit_groups(space, [&](const TrainingConfig& group, int64_t /*devices*/) {
        visit_group(small_shape(), space, group, [&](const TrainingConfig& each) {
          std::vector<StateChoice> states;
          state_choices(space, each, states);
          for (const StateChoice& choice : states) {
            TrainingConfig config = each;
            config.optimizer = choice.optimizer;
            config.zero = choice.zero;
            config.zero_shards = choice.zero_shards;
            config.offload_optimizer = has_host_states;
            config.offload_activations = has_host_activations;
            const TrainingPlan plan = plan_training(small_shape(), cluster, config, efficiency);
            if (to_real(plan.needed()) <= space.memory_limit) found.emplace_back(plan.expected.total(), plan.memory);
          }
        });
      });
    }
  }
  std::ranges::sort(found);
  return found;
}

TEST(TrainingSearch, FindsTheBestOfAllCombinations) {
  const ClusterRef cluster = gpu_cluster("a100", 2, {});
  const TrainingModel model = training_model(small_shape());
  const Efficiency efficiency = default_efficiency(*cluster);
  TrainingSpace space = small_space();
  const TrainingSearch found = search_training(model, *cluster, space, efficiency, nullptr);
  ASSERT_EQ(found.options.size(), 3U);
  EXPECT_GT(found.skipped, 0);
  EXPECT_EQ(found.consistent, found.priced + found.too_large + found.skipped);
  const std::vector<Numbers> all = all_fitting(*cluster, efficiency);
  EXPECT_DOUBLE_EQ(found.options[0].seconds, std::get<0>(all[0]));
  // Each point of the front is a combination, and nothing that was planned alone is faster with as little memory.
  for (const TrainingCandidate& each : found.front) {
    const auto is_it = [&](const Numbers& other) {
      return std::abs(std::get<0>(other) / each.seconds - 1) < 1e-12 && std::get<1>(other) == each.memory;
    };
    EXPECT_TRUE(std::ranges::any_of(all, is_it)) << each.seconds;
  }
  space.top = 100000;  // all that fits is priced, but offloading where it is not needed
  const TrainingSearch priced = search_training(model, *cluster, space, efficiency, nullptr);
  EXPECT_EQ(priced.consistent, found.consistent);
  EXPECT_EQ(priced.too_large, found.too_large);
  EXPECT_GT(priced.priced, found.priced);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(found.options[i].seconds, priced.options[i].seconds);
  EXPECT_EQ(found.front.size(), priced.front.size());
  space.memory_limit = 1e6;
  const TrainingSearch none = search_training(model, *cluster, space, efficiency, nullptr);
  EXPECT_TRUE(none.options.empty());
  EXPECT_EQ(none.nearest.size(), 3U);
  EXPECT_EQ(none.consistent, none.too_large);
}

TEST(TrainingSearch, CandidatesThatDifferByNothingThatMattersShareARow) {
  const auto candidate = [](double seconds, int64_t memory, int64_t host, TrainingOptimizer optimizer) {
    TrainingConfig config;
    config.optimizer = optimizer;
    return TrainingCandidate{config, seconds, memory, memory, host};
  };
  constexpr TrainingOptimizer kAdam = TrainingOptimizer::kAdam;
  std::vector<TrainingCandidate> candidates = {
      candidate(100, 1000, 500, kAdam),
      candidate(101, 1020, 510, kAdam),                     // within 1 % and 2 %
      candidate(101, 981, 500, kAdam),                      // smaller
      candidate(101, 1021, 500, kAdam),                     // more than 2 % larger
      candidate(101, 1000, 511, kAdam),                     // more in the host's memory
      candidate(101, 1000, 500, TrainingOptimizer::kMuon),  // another optimizer
      candidate(101.5, 1000, 500, kAdam),                   // slower
      candidate(102, 1000, 500, kAdam),                     // like the row before, not like the first
  };
  number_rows(candidates);
  std::vector<int64_t> rows;
  for (const TrainingCandidate& each : candidates) rows.push_back(each.row);
  EXPECT_EQ(rows, (std::vector<int64_t>{0, 0, 0, 1, 2, 3, 4, 4}));
}

TEST(TrainingSearch, BoundsProductsOfEightBitIntegersByTheirOwnFactor) {
  const ClusterRef cluster = gpu_cluster("a100", 2, {});
  const TrainingModel model = training_model(small_shape());
  Efficiency efficiency = ideal_efficiency();
  efficiency.factors[static_cast<size_t>(Factor::kMatmul)].value = 0.1;  // not that of the format
  TrainingSpace space = small_space();
  space.base.format = MatmulFormat::kInt8;
  const TrainingSearch found = search_training(model, *cluster, space, efficiency, nullptr);
  space.top = 100000;
  const TrainingSearch priced = search_training(model, *cluster, space, efficiency, nullptr);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(found.options.at(i).seconds, priced.options.at(i).seconds);
}

TEST(TrainingSearch, CountsEachCombination) {
  TrainingSpace space = small_space();
  TrainingConfig group = space.base;
  // chunks 2, microbatch 3, recompute 1 + 2, optimizer 2, ZeRO 3, shards 2, offload 2 x 2, and 2 methods.
  EXPECT_EQ(combinations_of_group(space, group), 2 * 3 * 3 * 2 * 3 * 2 * 4);
  group.context = 2;
  EXPECT_EQ(combinations_of_group(space, group), 2 * 2 * 3 * 3 * 2 * 3 * 2 * 4);
  EXPECT_EQ(count_of_groups(space), 4 * 2 * 3);
}

TEST(TrainingSearch, OffloadsOnlyWhatDoesNotFitOtherwise) {
  const ClusterRef cluster = gpu_cluster("a100", 2, {});
  const TrainingModel model = training_model(small_shape());
  const Efficiency efficiency = default_efficiency(*cluster);
  TrainingSpace space = small_space();
  space.context = space.pipeline = space.chunks = space.microbatch = space.tensor = {1};
  space.zero = {0};
  space.zero_shards = {0};
  space.optimizer = {TrainingOptimizer::kAdamMaster};
  space.recompute = {Recompute::kNone};
  space.top = 10;
  const auto offloaded = [&](double limit) {
    TrainingConfig sixteen = space.base;
    sixteen.data = 16;
    space.memory_limit = to_real(needed_bytes(whole_bytes(limit), sixteen, training_hardware(*cluster)));
    std::vector<std::pair<bool, bool>> kinds;
    for (const TrainingCandidate& each : search_training(model, *cluster, space, efficiency, nullptr).options) {
      kinds.emplace_back(each.config.offload_optimizer, each.config.offload_activations);
    }
    return kinds;
  };
  // States of 2, 4 and 12 bytes, activations of 24 layers and the loss.
  const double states = 18 * static_cast<double>(model.parameters.total());
  const TrainingConfig config = [&] {
    TrainingConfig each = space.base;
    each.data = 16;
    return each;
  }();
  const double activations = stage_activations(model, config, layers_of_stages(model, config).front(), 0);
  using Kinds = std::vector<std::pair<bool, bool>>;
  EXPECT_EQ(offloaded(states + activations), (Kinds{{false, false}}));
  EXPECT_EQ(offloaded(states * 6 / 18 + activations), (Kinds{{true, false}}));
  EXPECT_EQ(offloaded(states * 6 / 18 + activations - 1), (Kinds{{true, true}}));
}

TEST(TrainingSearch, RefusesImpossibleChoices) {
  const ClusterRef cluster = gpu_cluster("h100", 1, {});
  const TrainingModel model = training_model(small_shape());
  TrainingSpace space = small_space();
  space.devices = {8};
  space.tensor = {1, 0};
  space.context_method = {{ContextMethod::kRing, 2}};
  space.zero_shards = {-1};
  space.zero = {4};
  space.recompute = {};
  space.recompute_parts = {1, 0};
  space.offload_optimizer = {};
  space.top = 0;
  const std::string expected =
      "suggest: tensor has 0, expected 1 to 2147483648; zero_shards has -1, expected 0 to 2147483648; zero has "
      "4, expected 0 to 3; recompute has no choices, expected 1 or more; offload_optimizer has no choices, expected 1 or "
      "more; context_method's overlap has 2, expected 0 to 1; recompute_parts has 0, expected above 0, at most 1; top is "
      "0, expected 1 or more; correct the choices";
  EXPECT_EQ(message_of([&] { search_training(model, *cluster, space, ideal_efficiency(), nullptr); }), expected);
  EXPECT_EQ(message_of([&] { least_memory(model, {}, space, 8); }), expected);
  space = small_space();
  space.tensor = space.context = {int64_t{1} << 31};
  space.pipeline = {4};  // the product is 0 in 64 bits
  EXPECT_EQ(search_training(model, *cluster, space, ideal_efficiency(), nullptr).consistent, 0);
  Efficiency factors = ideal_efficiency();
  factors.factors[0].value = 0;
  EXPECT_EQ(message_of([&] { search_training(model, *cluster, space, factors, nullptr); }),
            "suggest: matmul is 0, expected a number above 0, at most 1; correct the factors");
}

}  // namespace
}  // namespace artifex_devices::planner
