// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "artifex_devices/base/error.h"
#include "artifex_planner/training/model.h"

namespace artifex_devices::planner {
namespace {

TransformerShape small() {
  return {
      .name = "small", .layers = 2, .embed = 64, .mlp = 128, .heads = 4, .kv_heads = 2, .head_dim = 16, .vocab = 1000};
}

TransformerShape with_experts() {
  TransformerShape shape = small();
  shape.layers = 7;
  shape.experts = 8;
  shape.experts_per_token = 2;
  shape.dense_layers = 1;
  shape.dense_mlp = 256;
  shape.expert_period = 2;
  return shape;
}

TEST(TransformerShape, ParametersOfTheHeader) {
  const ShapeParameters counts = shape_parameters(small());
  EXPECT_EQ(counts.total(), 202'048);
  EXPECT_EQ(counts.active, 202'048);
  EXPECT_EQ(counts.embedding, 64'000);
  EXPECT_EQ(counts.head, 64'000);
  EXPECT_EQ(counts.final_norm, 64);
  EXPECT_EQ(counts.layers, 2 * layer_parameters(small(), LayerKind::kDense).total());
}

TEST(TransformerShape, BiasesAreCountedWhereTheyAre) {
  TransformerShape shape = small();
  const auto more = [&](const auto& change) {
    TransformerShape changed = shape;
    change(changed);
    return shape_parameters(changed).total() - shape_parameters(shape).total();
  };
  EXPECT_EQ(more([](TransformerShape& s) { s.qkv_bias = true; }), 2 * (64 + 2 * 32));
  EXPECT_EQ(more([](TransformerShape& s) { s.attention_out_bias = true; }), 2 * 64);
  EXPECT_EQ(more([](TransformerShape& s) { s.mlp_bias = true; }), 2 * (2 * 128 + 64));
  EXPECT_EQ(more([](TransformerShape& s) { s.head_bias = true; }), 1000);
  EXPECT_EQ(more([](TransformerShape& s) { s.query_key_norm = true; }), 2 * 2 * 16);
  EXPECT_EQ(more([](TransformerShape& s) { s.joint_query_key_norm = true; }), 2 * (64 + 32));
  EXPECT_EQ(more([](TransformerShape& s) { s.attention_sinks = true; }), 2 * 4);
  EXPECT_EQ(more([](TransformerShape& s) { s.gated_attention = true; }), 2 * 64 * 64);
  EXPECT_EQ(more([](TransformerShape& s) { s.norm = NormKind::kLayer; }), 5 * 64);
  EXPECT_EQ(more([](TransformerShape& s) { s.norm = NormKind::kLayerWithoutParameters; }), -5 * 64);
  EXPECT_EQ(more([](TransformerShape& s) { s.positions = 10; }), 640);
  EXPECT_EQ(more([](TransformerShape& s) { s.tied_embeddings = true; }), -64'000);
  EXPECT_EQ(more([](TransformerShape& s) { s.gated_mlp = false; }), -2 * 64 * 128);
  EXPECT_EQ(more([](TransformerShape& s) { s.embedding_norm = true; }), 64);
}

TEST(TransformerShape, LayersHaveExpertsByPeriod) {
  const TransformerShape shape = with_experts();
  check_shape(shape);
  int64_t count = 0;
  for (int64_t i = 0; i < shape.layers; ++i) {
    const bool expected = i == 2 || i == 4 || i == 6;
    EXPECT_EQ(layer_kind(shape, i) == LayerKind::kExperts, expected) << i;
    count += expected ? 1 : 0;
  }
  EXPECT_EQ(expert_layers(shape), count);
  const LayerParameters experts = layer_parameters(shape, LayerKind::kExperts);
  EXPECT_EQ(experts.total() - experts.active(), 6 * 3 * 64 * 128);
  EXPECT_EQ(shape_parameters(shape).total() - shape_parameters(shape).active, 3 * 6 * 3 * 64 * 128);
}

TEST(TransformerShape, WindowsByPeriod) {
  TransformerShape shape = small();
  shape.layers = 7;
  EXPECT_EQ(windowed_layers(shape), 0);
  shape.window = 100;
  EXPECT_EQ(windowed_layers(shape), 7);
  shape.full_attention_period = 3;
  EXPECT_EQ(windowed_layers(shape), 5);
  const int64_t each = 2 * 2 * 16;
  EXPECT_EQ(cache_elements(shape, 1), 7 * each);
  EXPECT_EQ(cache_elements(shape, 1000), each * (2 * 1000 + 5 * 100));
}

TEST(TransformerShape, LinearAttentionIsInAllLayersButEachPeriod) {
  TransformerShape shape = small();
  shape.layers = 9;
  shape.full_attention_period = 4;
  shape.linear_key_heads = 2;
  shape.linear_value_heads = 4;
  shape.linear_key_dim = 8;
  shape.linear_value_dim = 16;
  shape.linear_kernel = 3;
  check_shape(shape);
  EXPECT_EQ(linear_layers(shape), 7);
  const int64_t full = 64 * (64 + 2 * 32) + 64 * 64;
  const int64_t products = 64 * (2 * 16 + 2 * 64 + 2 * 4) + 64 * 64;
  const int64_t linear = products + (2 * 16 + 64) * 3 + 2 * 4 + 16;
  const int64_t rest = 9 * (3 * 64 * 128 + 2 * 64);
  EXPECT_EQ(shape_parameters(shape).layers, 2 * full + 7 * linear + rest);
  EXPECT_EQ(layer_parameters(shape, LayerKind::kDense).attention, (2 * full + 7 * linear) / 9);
  EXPECT_EQ(cache_elements(shape, 1000), 2 * 1000 * 64 + 7 * (64 * 8 + (2 * 16 + 64) * 3));
  // The products of both kinds, by their share of the layers, have the elements of the matrices.
  const TrainingModel model = training_model(shape);
  double elements = 0;
  for (const LayerProduct& each : model.layer(LayerKind::kDense).attention) elements += each.inner * each.columns;
  EXPECT_NEAR(9 * elements, static_cast<double>(2 * full + 7 * products), 1e-6);
  // A token attends to 4 (3 x 8 x 16 + 64 (8 + 16)) / (4 x 32) = 60 tokens in a linear layer, by its FLOPs.
  EXPECT_DOUBLE_EQ(attended_tokens(model, 900, true), 2.0 / 9 * 450 + 7.0 / 9 * 60);
  shape.window = 100;
  EXPECT_EQ(shape_problems(shape).size(), 1U);
}

TEST(TransformerShape, OtherParametersAreOfAllLayers) {
  TransformerShape shape = small();
  shape.other_parameters = -100;
  EXPECT_EQ(shape_parameters(shape).total(), 202'048 - 100);
  EXPECT_EQ(shape_parameters(shape).active, 202'048 - 100);
  EXPECT_DOUBLE_EQ(training_model(shape).layer(LayerKind::kDense).other_parameters, 2 * 64 - 50);
  shape.other_parameters = -300'000;
  EXPECT_EQ(shape_problems(shape).size(), 1U);
}

TEST(TransformerShape, AllProblemsAreInOneError) {
  TransformerShape shape = with_experts();
  shape.kv_heads = 3;
  shape.experts_per_token = 9;
  try {
    check_shape(shape);
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_STREQ(error.what(),
                 "TransformerShape: heads is 4, not a multiple of 3 kv_heads; each token is routed to 9 of 8 experts; "
                 "expected sizes that fit each other; correct each");
  }
  EXPECT_TRUE(shape_problems(with_experts()).empty());
  EXPECT_EQ(kind_from_name<NormKind>("batch"), std::nullopt);
  EXPECT_EQ(to_string(kind_from_name<NormKind>("layer without bias").value()), "layer without bias");
}

}  // namespace
}  // namespace artifex_devices::planner
