// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <string>

#include "../base/message_of.h"
#include "artifex_devices/base/error.h"
#include "artifex_devices/cluster/cluster_presets.h"
#include "artifex_planner/training/memory.h"
#include "artifex_planner/training/plan.h"
#include "artifex_planner/training/schedule.h"

namespace artifex_devices::planner {
namespace {

TransformerShape llama_405b() {
  TransformerShape shape;
  shape.name = "llama";
  shape.layers = 126;
  shape.embed = 16384;
  shape.mlp = 53248;
  shape.heads = 128;
  shape.kv_heads = 8;
  shape.head_dim = 128;
  shape.vocab = 128256;
  return shape;
}

/// The GPT-3 175B of Korthikanti et al. 2022 (arXiv:2205.05198, table 3): 96 heads, 12288 wide, 96 layers.
TransformerShape gpt_175b() {
  TransformerShape shape;
  shape.name = "gpt";
  shape.layers = 96;
  shape.embed = 12288;
  shape.mlp = 4 * 12288;
  shape.heads = shape.kv_heads = 96;
  shape.head_dim = 128;
  shape.vocab = 51200;
  shape.gated_mlp = false;
  shape.tied_embeddings = true;
  return shape;
}

TrainingConfig gpt_config() {
  TrainingConfig config;
  config.batch = 64;
  config.sequence = 2048;
  config.flash_attention = false;
  config.dropout = true;
  return config;
}

TEST(TrainingMemory, HasTheZeroTableOfTheirPaper) {
  TrainingConfig config;
  config.gradient_bytes = every_tensor(2);
  config.data = 64;
  LocalParameters parameters;
  parameters[TensorKind::kMlp] = 7.5e9;
  const std::array<double, 4> expected = {120e9, 31.4e9, 16.6e9, 1.88e9};
  for (int zero = 0; zero < 4; ++zero) {
    config.zero = zero;
    const auto bytes = state_bytes(parameters, config);
    EXPECT_NEAR(std::accumulate(bytes.begin(), bytes.end(), 0.0), expected[static_cast<size_t>(zero)], 0.05e9) << zero;
  }
}

TEST(TrainingMemory, HasTheBytesOfEachKindOfTensor) {
  TransformerShape shape = llama_405b();
  shape.layers = 2;
  shape.experts = 8;
  shape.experts_per_token = 2;
  shape.dense_layers = 1;
  shape.dense_mlp = 8192;
  const TrainingModel model = training_model(shape);
  TrainingConfig config;
  config.tensor = 8;
  config.expert = 4;
  config.data = 2;
  const LocalParameters held = stage_parameters(model, config, {1, 1, true, true});
  EXPECT_EQ(held[TensorKind::kEmbedding], 128256 * 16384 / 8);
  EXPECT_EQ(held[TensorKind::kHead], 128256 * 16384 / 8);
  EXPECT_EQ(held[TensorKind::kNorm], 5 * 16384);
  EXPECT_EQ(held[TensorKind::kAttention], 2 * 16384.0 * (128 * 128 + 2 * 8 * 128 + 128 * 128) / 8);
  EXPECT_EQ(held[TensorKind::kMlp], 3.0 * 16384 * 8192 / 8);
  EXPECT_EQ(held[TensorKind::kRouter], 16384 * 8);
  EXPECT_EQ(held[TensorKind::kExpert], 8 * 3.0 * 16384 * 53248 / 4);
  EXPECT_EQ(held.bytes({0, 0, 3, 0, 0, 0, 0}).dense, 3 * 5 * 16384);
  EXPECT_EQ(held.bytes(every_tensor(2)).experts, 2 * held[TensorKind::kExpert]);
  // ZeRO shards experts over their 4 replicas, all else over the 2 replicas of the data axis.
  const LocalParameters owned = owned_parameters(held, config);
  EXPECT_EQ(owned[TensorKind::kExpert], held[TensorKind::kExpert] / 4);
  EXPECT_EQ(owned[TensorKind::kRouter], held[TensorKind::kRouter] / 2);
}

TEST(TrainingMemory, ShardsExpertsOverADivisorOfTheirReplicas) {
  TrainingConfig config;
  config.data = 24;
  config.expert = 2;
  EXPECT_EQ(config.expert_replicas(), 12);
  for (const auto& [given, used] : {std::pair{0, 12}, {24, 12}, {8, 6}, {4, 4}, {1, 1}}) {
    config.zero_shards = given;
    EXPECT_EQ(config.expert_shards(), used) << given;
  }
}

TEST(TrainingMemory, IsInWholeBytes) {
  for (const double bytes : {0.0, 0.25, 0.5, 1.5, 2.5, 1e6 + 0.5, 0x1p52 - 0.5, 0x1p52 + 1, 1e18}) {
    EXPECT_EQ(whole_bytes(bytes), std::llround(bytes)) << bytes;
  }
  EXPECT_EQ(whole_bytes(1e30), int64_t{1} << 60);
}

TEST(TrainingHost, IsTheFullestOfAll) {
  TrainingHardware hardware;
  hardware.devices_per_host = 8;
  TrainingConfig config;
  config.pipeline = 3;
  const auto fullest = [&](int64_t of_stage, const std::vector<double>& stages) {
    config.data = of_stage;
    return fullest_host(stages, config, hardware);
  };
  EXPECT_EQ(fullest(4, {3, 1, 9}), 4 * 9);  // hosts of stages 0 and 1, and of stage 2 alone
  EXPECT_EQ(fullest(4, {3, 1, 2}), 4 * 3 + 4 * 1);
  EXPECT_EQ(fullest(2, {3, 1, 9}), 2 * (3 + 1 + 9));  // one host
  EXPECT_EQ(fullest(12, {1, 9, 1}), 8 * 9);           // devices 16 to 23
  EXPECT_EQ(fullest(8, {5, 7, 6}), 8 * 7);
  hardware.has_consecutive_hosts = false;
  EXPECT_EQ(fullest(4, {3, 1, 2}), 8 * 3);
  EXPECT_EQ(fullest(1, {3, 1, 2}), 3 * 3);  // three devices
}

TEST(TrainingMemory, HasTheActivationsOfKorthikanti) {
  const TrainingModel model = training_model(gpt_175b());
  TrainingConfig config = gpt_config();
  const double sbh = 2048.0 * 12288;
  const double scores = 5.0 * 96 * 2048 / 12288;
  const auto kept = [&] { return layer_activations(model, config, LayerKind::kDense).kept / sbh; };
  EXPECT_DOUBLE_EQ(kept(), 34 + scores);  // equation 1
  config.tensor = 8;
  EXPECT_DOUBLE_EQ(kept(), 10 + 24.0 / 8 + scores / 8);  // equation 2
  config.sequence_parallel = true;
  EXPECT_DOUBLE_EQ(kept(), (34 + scores) / 8);  // equation 4
  config.recompute = Recompute::kSelective;
  EXPECT_DOUBLE_EQ(kept(), 34.0 / 8);  // equation 6
  EXPECT_DOUBLE_EQ(layer_activations(model, config, LayerKind::kDense).input / sbh, 2.0 / 8);
}

TEST(TrainingConfig, SpreadsLayersWithFewerInTheLastAndFirstStage) {
  const std::vector<int64_t> stages = stage_layers(126, 16);
  EXPECT_EQ(stages.front(), 7);
  EXPECT_EQ(stages[1], 8);
  EXPECT_EQ(stages.back(), 7);
  EXPECT_EQ(std::accumulate(stages.begin(), stages.end(), int64_t{0}), 126);
}

TEST(TrainingConfig, HoldsTheMicrobatchesOfItsSchedule) {
  TrainingConfig config;
  config.pipeline = 4;
  config.batch = 32;
  EXPECT_EQ(chunks_in_flight(config, 0), 4);
  EXPECT_EQ(chunks_in_flight(config, 3), 1);
  config.schedule = PipelineSchedule::kGPipe;
  EXPECT_EQ(chunks_in_flight(config, 3), 32);
  config.schedule = PipelineSchedule::kInterleaved;
  config.chunks = 2;
  // L (1 + (p - 1) / (p v)) layers (arXiv:2205.05198, section 4.2.3): 4 x 2 + 3 chunks.
  EXPECT_EQ(chunks_in_flight(config, 0), 11);
}

TEST(PipelineTimeline, HasTheBubblesOfNarayanan) {
  for (const auto& [schedule, chunks] : {std::pair{PipelineSchedule::kGPipe, int64_t{1}},
                                         std::pair{PipelineSchedule::kOneForwardOneBackward, int64_t{1}},
                                         std::pair{PipelineSchedule::kInterleaved, int64_t{2}}}) {
    const PipelineShape shape{schedule, 8, chunks, std::vector<double>(4, 1), std::vector<double>(4, 2)};
    const double bubble = 3.0 / static_cast<double>(8 * chunks);
    EXPECT_NEAR(std::ranges::max(pipeline_timeline(shape), {}, &PipelineTask::end).end, 24 * (1 + bubble), 1e-9)
        << to_string(schedule);
  }
  EXPECT_THROW(pipeline_timeline({PipelineSchedule::kInterleaved, 6, 2, {1, 1, 1, 1}, {1, 1, 1, 1}}), InvalidArgument);
}

TEST(TrainingEfficiency, LosesFewerBytesOfSmallMessages) {
  EXPECT_EQ(message_efficiency(1e6, 0.8, 0), 0.8);
  EXPECT_DOUBLE_EQ(message_efficiency(1e6, 0.8, 1e6), 0.4);
  // Of 1 MB with 7 MB as `half`, 7 sqrt(2 x 1 / (1 + 7)) MB are lost.
  EXPECT_DOUBLE_EQ(message_efficiency(1e6, 1, 7e6), 1 / (1 + 7 * 0.5));
  EXPECT_NEAR(message_efficiency(1e12, 1, 1e6), 1, 2e-6);
}

TEST(TokenRoutes, ReachFewerNodesInFewGroups) {
  EXPECT_DOUBLE_EQ((TokenRoutes{8, 1, 1}.nodes_reached(8)), 8 * (1 - std::pow(7.0 / 8, 8)));
  EXPECT_DOUBLE_EQ((TokenRoutes{8, 8, 4}.nodes_reached(8)), 4 * (1 - std::pow(3.0 / 4, 8)));
  EXPECT_DOUBLE_EQ((TokenRoutes{8, 8, 4}.nodes_reached(16)), 8 * (1 - std::pow(7.0 / 8, 8)));  // two for each group
  EXPECT_EQ((TokenRoutes{8, 8, 4}.nodes_reached(1)), 1);
}

TEST(TrainingPlan, ExpressesLlama3405B) {
  const ClusterRef cluster = gpu_cluster("h100", 2048, {});
  TrainingConfig config;
  config.tensor = 8;
  config.sequence_parallel = true;
  config.pipeline = 16;
  config.data = 128;
  config.zero = 1;
  config.batch = 2048;
  config.sequence = 8192;
  const TrainingPlan plan = plan_training(llama_405b(), *cluster, config, default_efficiency(*cluster));
  for (const TrainingStage& stage : plan.stages) EXPECT_LE(total(stage.memory), plan.available);
  EXPECT_EQ(plan.bubble_fraction, 15.0 / 16);
  EXPECT_LT(plan.roofline.total(), plan.expected.total());
  config.data = 64;
  EXPECT_THROW(plan_training(llama_405b(), *cluster, config, default_efficiency(*cluster)), InvalidArgument);
}

TEST(TrainingPlan, RefusesImpossibleCounts) {
  const ClusterRef cluster = gpu_cluster("h100", 1, {});
  const auto planned = [&](const TrainingConfig& config) {
    return message_of([&] { plan_training(llama_405b(), *cluster, config, ideal_efficiency(), 8); });
  };
  TrainingConfig config;
  config.data = 8;
  config.batch = 8;
  config.tensor = 0;
  config.expert_tensor = -1;
  EXPECT_EQ(planned(config),
            "plan_training: tensor is 0, expected 1 to 2147483648; expert_tensor is -1, expected 1 to 2147483648; "
            "correct the configuration");
  config.expert_tensor = 1;
  config.tensor = config.context = int64_t{1} << 31;
  config.pipeline = 4;  // the product is 0 in 64 bits
  EXPECT_EQ(planned(config),
            "plan_training: tensor 2147483648 x context 2147483648 x data 8 x pipeline 4 are 147573952589676412928 "
            "devices, expected 8; correct the configuration");
}

TEST(Efficiency, CountsTilesAndWaves) {
  Efficiency efficiency = default_efficiency(*gpu_cluster("h100", 1, {}));
  EXPECT_NEAR(tile_efficiency(1024, 1024, efficiency), 64.0 / 132, 1e-12);
  EXPECT_EQ(tile_efficiency(5, 7, ideal_efficiency()), 1);
  EXPECT_EQ(efficiency_mistakes(efficiency), "");
  efficiency.factors[0].value = 2;
  EXPECT_EQ(efficiency_mistakes(efficiency), "matmul is 2, expected a number above 0, at most 1");
}

}  // namespace
}  // namespace artifex_devices::planner
