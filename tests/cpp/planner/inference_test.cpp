// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "../base/message_of.h"
#include "artifex_devices/base/error.h"
#include "artifex_devices/cluster/cluster_presets.h"
#include "artifex_planner/inference/decode.h"
#include "artifex_planner/inference/plan.h"

namespace artifex_devices::planner {
namespace {

TransformerShape of_llama() {
  return {
      .name = "llama", .layers = 2, .embed = 64, .mlp = 128, .heads = 4, .kv_heads = 2, .head_dim = 16, .vocab = 1000};
}

void set(Efficiency& efficiency, Factor factor, double value) {
  efficiency.factors[static_cast<size_t>(factor)].value = value;
}

/// One step at half of an H100's bandwidth, and with no other losses.
DecodeSeconds step_of(const TransformerShape& shape, const InferenceConfig& config, int64_t context,
                      const Efficiency* given = nullptr) {
  const ClusterRef cluster = gpu_cluster("h100", 1, {});
  Efficiency efficiency = ideal_efficiency();
  set(efficiency, Factor::kStream, 0.5);
  set(efficiency, Factor::kDecodeLayerSeconds, 1e-5);
  const TrainingModel model = training_model(shape);
  const TrainingHardware hardware = training_hardware(*cluster, "test");
  TrainingLinks links(*cluster);
  return DecodePricer(model, config, hardware, links, given != nullptr ? *given : efficiency).step(context);
}

/// Equal except for the rounding of sums in another order.
void expect_same(double found, double expected, double part = 1e-12) { EXPECT_NEAR(found, expected, part * expected); }

constexpr double kBandwidth = 3.35e12 / 2;
constexpr double kPeak = 989e12;

// Matrices of a layer: queries 64 x 64, keys and values 64 x 64, result 64 x 64, gate and up 64 x 256, down 128 x 64.
constexpr double kLayerElements = 3 * 64 * 64 + 64 * 256 + 128 * 64;
constexpr double kLayerEdges = 3 * (64 + 64) + (64 + 256) + (128 + 64);  // inner + columns, for each row
constexpr double kHeadElements = 64 * 1000;

TEST(Decode, ReadsEachMatrixOnceForABatch) {
  InferenceConfig config;
  for (const int64_t batch : {1, 8}) {
    config.batch = batch;
    const DecodeSeconds seconds = step_of(of_llama(), config, 100);
    const auto rows = static_cast<double>(batch);
    const double bytes = 2 * (2 * kLayerElements + kHeadElements) + 2 * rows * (2 * kLayerEdges + 64 + 1000);
    expect_same(seconds[DecodePart::kProducts], bytes / kBandwidth);
    expect_same(seconds[DecodePart::kFixed], 2e-5);
    EXPECT_EQ(seconds[DecodePart::kTensor], 0);
    EXPECT_EQ(seconds[DecodePart::kPipeline], 0);
  }
}

TEST(Decode, ReadsTheBytesOfEachKindOfTensor) {
  InferenceConfig config;
  config.parameter_bytes[static_cast<size_t>(TensorKind::kMlp)] = 1;
  config.parameter_bytes[static_cast<size_t>(TensorKind::kHead)] = 0.5;
  const double edges = 2 * (2 * kLayerEdges + 64 + 1000);
  const double attention = 3 * 64 * 64;
  const double bytes = 2 * (2 * attention + (kLayerElements - attention)) + 0.5 * kHeadElements + edges;
  expect_same(step_of(of_llama(), config, 100)[DecodePart::kProducts], bytes / kBandwidth);
  TransformerShape tied = of_llama();
  tied.tied_embeddings = true;  // the output reads the embedding, of two bytes
  expect_same(step_of(tied, config, 100)[DecodePart::kProducts], (bytes + 1.5 * kHeadElements) / kBandwidth);
}

TEST(Decode, ProductsOfLargeBatchesTakeTheirFlops) {
  TransformerShape wide = of_llama();
  wide.embed = 8192;
  wide.mlp = 8192;
  InferenceConfig config;
  config.batch = 4096;
  Efficiency efficiency = ideal_efficiency();
  set(efficiency, Factor::kMatmul, 0.5);
  // Tiles of 128 x 256 on 132 processors do not count.
  set(efficiency, Factor::kTileRows, 128);
  set(efficiency, Factor::kTileColumns, 256);
  set(efficiency, Factor::kProcessors, 132);
  const DecodeSeconds seconds = step_of(wide, config, 1, &efficiency);
  const auto of_product = [](double inner, double columns) {
    const double bytes = 2 * inner * columns + 2 * 4096 * (inner + columns);
    return std::max(2 * 4096 * inner * columns / (kPeak / 2), bytes / 3.35e12);
  };
  const double layer =
      2 * of_product(8192, 64) + of_product(64, 8192) + of_product(8192, 2 * 8192) + of_product(8192, 8192);
  expect_same(seconds[DecodePart::kProducts], 2 * layer + of_product(8192, 1000));
  EXPECT_EQ(of_product(8192, 8192), 2 * 4096 * 8192.0 * 8192 / (kPeak / 2));
  EXPECT_GT(of_product(8192, 64), 2 * 4096 * 8192.0 * 64 / (kPeak / 2));
}

TEST(Decode, ReadsTheCacheOfEachSequence) {
  InferenceConfig config;
  config.batch = 3;
  config.cache_bytes = 1;
  // 2 layers, keys and values of 2 heads of 16.
  expect_same(step_of(of_llama(), config, 1000)[DecodePart::kAttention], 3 * 1000.0 * 2 * 2 * 2 * 16 / kBandwidth);
  config.tensor = 2;
  expect_same(step_of(of_llama(), config, 1000)[DecodePart::kAttention], 3 * 1000.0 * 2 * 2 * 16 / kBandwidth);
  config.tensor = 4;  // two devices share a head, and each has a copy of its cache
  expect_same(step_of(of_llama(), config, 1000)[DecodePart::kAttention], 3 * 1000.0 * 2 * 2 * 16 / kBandwidth);
}

TEST(Decode, AttentionToLatentVectorsTakesItsFlops) {
  TransformerShape shape = of_llama();
  shape.heads = shape.kv_heads = 512;
  shape.head_dim = 24;
  shape.nope_head_dim = 16;
  shape.rope_head_dim = 8;
  shape.kv_lora_rank = 32;
  shape.value_head_dim = 16;
  // Each head multiplies 40 elements of each token for the score, and 32 for the value.
  const double flops = 2 * 1000.0 * 2 * 512 * (40 + 32);
  expect_same(step_of(shape, {}, 1000)[DecodePart::kAttention], flops / kPeak);
  EXPECT_GT(flops / kPeak, 1000 * 2 * 40 * 2 / kBandwidth);
}

TEST(Decode, ReadsTheExpertsThatABatchUses) {
  expect_same(distinct_experts(8, 2, 1), 2);
  expect_same(distinct_experts(8, 2, 2), 3.5);
  expect_same(distinct_experts(8, 2, 3), 8 * (1 - std::pow(0.75, 3)));
  EXPECT_EQ(distinct_experts(8, 8, 1), 8);
  TransformerShape shape = of_llama();
  shape.experts = 8;
  shape.experts_per_token = 2;
  InferenceConfig config;
  config.batch = 2;
  const double expert = 3 * 64 * 128;
  const auto experts = [&](const InferenceConfig& each) {
    TransformerShape none = shape;  // a layer whose experts have one column
    none.mlp = 1;
    return step_of(shape, each, 1)[DecodePart::kProducts] - step_of(none, each, 1)[DecodePart::kProducts];
  };
  // 4 rows for 3.5 experts, whose matrices are 64 x 256 and 128 x 64 instead of 64 x 2 and 1 x 64.
  const double bytes = 2 * 3.5 * (expert - 3 * 64) + 2 * 4 * (254 + 127);
  expect_same(experts(config), 2 * bytes / kBandwidth, 1e-6);
  config.tensor = config.expert = 4;  // each device has a quarter of the experts
  expect_same(experts(config), 2 * bytes / 4 / kBandwidth, 1e-6);
}

TEST(Decode, SumsSmallArraysInOneStep) {
  expect_same(one_shot_seconds(0, 2, 1), 3.72e-6);
  expect_same(one_shot_seconds(1e6, 4, 450e9), 3e-6 + 4 * 0.36e-6 + 3e6 / 450e9);
  InferenceConfig config;
  config.tensor = 4;
  config.batch = 2;
  // After attention and MLP of 2 layers, and after the embedding; 450e9 bytes/s out of each H100.
  const double each = one_shot_seconds(2 * 64 * 2, 4, 450e9);
  expect_same(step_of(of_llama(), config, 1)[DecodePart::kTensor], 5 * each);
  TransformerShape parallel = of_llama();
  parallel.parallel_layers = true;
  expect_same(step_of(parallel, config, 1)[DecodePart::kTensor], 3 * each);
}

TEST(InferencePlan, RefusesImpossibleNumbers) {
  const ClusterRef cluster = gpu_cluster("h100", 1, {});
  InferenceConfig config;
  config.tensor = 0;
  config.cache_bytes = 0;
  config.parameter_bytes[0] = 17;
  EXPECT_EQ(message_of([&] { plan_inference(of_llama(), *cluster, config, ideal_efficiency()); }),
            "plan_inference: tensor is 0, expected 1 to 2147483648; parameter_bytes of embedding is 17, expected above "
            "0, at most 16; cache_bytes is 0, expected above 0, at most 16; correct the arguments");
}

TEST(InferencePlan, PutsThePromptsOfOthersBetweenTwoTokens) {
  const ClusterRef cluster = gpu_cluster("h100", 1, {});
  InferenceConfig config;
  config.batch = 4;
  config.prompt = 512;
  config.output = 100;
  const InferencePlan plan = plan_inference(of_llama(), *cluster, config, ideal_efficiency());
  const InferenceSeconds& seconds = plan.expected;
  EXPECT_EQ(plan.cache, 4.0 * 612 * 2 * 2 * 2 * 16 * 2);
  expect_same(seconds.decode, seconds.step + 3 * (seconds.prefill / 4) / 100);
  expect_same(seconds.request, seconds.prefill + 99 * seconds.step);
  expect_same(seconds.tokens_per_second, 8 * 4 * 100 / seconds.request);  // 8 replicas
  expect_same(seconds.last_step - seconds.step, 4 * 50 * 2 * 2 * 2 * 16 * 2 / 3.35e12, 1e-6);
  config.tensor = 3;
  EXPECT_THROW(plan_inference(of_llama(), *cluster, config, ideal_efficiency()), InvalidArgument);
}

}  // namespace
}  // namespace artifex_devices::planner
