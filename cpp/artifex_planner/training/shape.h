// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "artifex_planner/fields.h"
#include "artifex_planner/kind_names.h"

namespace artifex_devices::planner {

/// A count as a number of formulas.
constexpr double to_real(int64_t count) noexcept { return static_cast<double>(count); }

enum class NormKind : uint8_t {
  kRms,                    // one scale for each element
  kLayer,                  // a scale and a bias
  kLayerWithoutBias,       // a scale
  kLayerWithoutParameters  // normalizes only
};
template <>
inline constexpr std::array<std::string_view, 4> kKindNames<NormKind>{"rms", "layer", "layer without bias",
                                                                      "layer without parameters"};

/// Sizes of a decoder. The defaults are a Llama: RMS norms, rotary positions, gated MLPs, no biases, a separate output
/// matrix. Example: {.name = "small", .layers = 2, .embed = 64, .mlp = 128, .heads = 4, .kv_heads = 2, .head_dim = 16,
/// .vocab = 1000} has 202,048 parameters.
struct TransformerShape {
  std::string name;
  int64_t layers = 1;
  int64_t embed = 1;     // width of the residual stream
  int64_t mlp = 1;       // width of the MLP, or of one routed expert
  int64_t heads = 1;     // query heads
  int64_t kv_heads = 1;  // heads of keys and values; divides `heads`
  int64_t head_dim = 1;  // width of a query or key head
  int64_t vocab = 1;     // rows of the embedding

  // Experts. Layers before `dense_layers` have an MLP of width `dense_mlp`; of the later layers, each
  // `expert_period`-th has experts, and the layers between them have the MLP of width `dense_mlp` too.
  int64_t experts = 0;  // routed experts of a layer; 0 is a dense MLP in each layer
  int64_t experts_per_token = 0;
  int64_t shared_experts = 0;  // experts that each token passes, in addition to the routed experts
  int64_t shared_mlp = 0;      // width of one shared expert
  int64_t dense_layers = 0;
  int64_t dense_mlp = 0;
  int64_t expert_period = 1;
  int64_t expert_groups = 0;     // neighbouring experts that a token is routed to together; 0: any experts
  int64_t groups_per_token = 0;  // groups whose experts a token may be routed to (DeepSeek-V3, section 2.1.2)

  // Multi-head latent attention (DeepSeek-V2), where `kv_lora_rank` is above 0: `head_dim` is nope_head_dim +
  // rope_head_dim, and `kv_heads` is `heads`.
  int64_t q_lora_rank = 0;  // 0: queries are projected in one step
  int64_t kv_lora_rank = 0;
  int64_t rope_head_dim = 0;
  int64_t nope_head_dim = 0;
  int64_t value_head_dim = 0;  // 0: head_dim

  // Attention over the last `window` tokens, where it is above 0: in all layers, or in all but each
  // `full_attention_period`-th one.
  int64_t window = 0;
  int64_t full_attention_period = 0;

  // Linear attention by the gated delta rule (Qwen3-Next), where `linear_value_heads` is above 0: in all layers but
  // each `full_attention_period`-th one.
  int64_t linear_key_heads = 0;
  int64_t linear_value_heads = 0;
  int64_t linear_key_dim = 0;    // width of a query or key head
  int64_t linear_value_dim = 0;  // width of a value head
  int64_t linear_kernel = 0;     // tokens of the convolution before it

  int64_t positions = 0;          // rows of a table of learned positions
  int64_t prediction_layers = 0;  // layers of multi-token prediction; counted separately
  int64_t norms_per_layer = 2;
  int64_t other_parameters = 0;  // of all layers together, that the sizes leave out, or count too much where negative
  NormKind norm = NormKind::kRms;
  bool tied_embeddings = false;  // the output uses the embedding's matrix
  bool gated_mlp = true;         // three matrices, else two
  bool qkv_bias = false;
  bool attention_out_bias = false;
  bool mlp_bias = false;
  bool head_bias = false;
  bool router_bias = false;
  bool shared_gate = false;           // a gate of `embed` elements scales the result of the shared experts
  bool query_key_norm = false;        // RMS norms over each query and key head
  bool joint_query_key_norm = false;  // RMS norms over all query heads together, and over all key heads (OLMo 2)
  bool attention_sinks = false;       // a learned logit for each head (gpt-oss)
  bool gated_attention = false;       // a gate as wide as the queries scales attention's result (Qwen3-Next)
  bool embedding_norm = false;        // a norm after the embedding (BLOOM)
  bool parallel_layers = false;       // attention and MLP read the same input (GPT-NeoX, Falcon, PaLM)
};
void visit_fields(FieldsOf<TransformerShape> auto& shape, const auto& visit) {
  visit("name", shape.name);
  visit("layers", shape.layers);
  visit("embed", shape.embed);
  visit("mlp", shape.mlp);
  visit("heads", shape.heads);
  visit("kv_heads", shape.kv_heads);
  visit("head_dim", shape.head_dim);
  visit("vocab", shape.vocab);
  visit("experts", shape.experts);
  visit("experts_per_token", shape.experts_per_token);
  visit("shared_experts", shape.shared_experts);
  visit("shared_mlp", shape.shared_mlp);
  visit("dense_layers", shape.dense_layers);
  visit("dense_mlp", shape.dense_mlp);
  visit("expert_period", shape.expert_period);
  visit("expert_groups", shape.expert_groups);
  visit("groups_per_token", shape.groups_per_token);
  visit("q_lora_rank", shape.q_lora_rank);
  visit("kv_lora_rank", shape.kv_lora_rank);
  visit("rope_head_dim", shape.rope_head_dim);
  visit("nope_head_dim", shape.nope_head_dim);
  visit("value_head_dim", shape.value_head_dim);
  visit("window", shape.window);
  visit("full_attention_period", shape.full_attention_period);
  visit("linear_key_heads", shape.linear_key_heads);
  visit("linear_value_heads", shape.linear_value_heads);
  visit("linear_key_dim", shape.linear_key_dim);
  visit("linear_value_dim", shape.linear_value_dim);
  visit("linear_kernel", shape.linear_kernel);
  visit("positions", shape.positions);
  visit("prediction_layers", shape.prediction_layers);
  visit("norms_per_layer", shape.norms_per_layer);
  visit("other_parameters", shape.other_parameters);
  visit("norm", shape.norm);
  visit("tied_embeddings", shape.tied_embeddings);
  visit("gated_mlp", shape.gated_mlp);
  visit("qkv_bias", shape.qkv_bias);
  visit("attention_out_bias", shape.attention_out_bias);
  visit("mlp_bias", shape.mlp_bias);
  visit("head_bias", shape.head_bias);
  visit("router_bias", shape.router_bias);
  visit("shared_gate", shape.shared_gate);
  visit("query_key_norm", shape.query_key_norm);
  visit("joint_query_key_norm", shape.joint_query_key_norm);
  visit("attention_sinks", shape.attention_sinks);
  visit("gated_attention", shape.gated_attention);
  visit("embedding_norm", shape.embedding_norm);
  visit("parallel_layers", shape.parallel_layers);
}

enum class LayerKind : uint8_t { kDense, kExperts };

/// Numbers of elements of one layer.
struct LayerParameters {
  int64_t attention = 0;            // with its biases and its norms of heads; the mean where layers differ
  int64_t feed_forward = 0;         // MLP, or router and all experts
  int64_t active_feed_forward = 0;  // MLP, or router, shared experts and the experts of one token
  int64_t norms = 0;
  int64_t total() const { return attention + feed_forward + norms; }
  int64_t active() const { return attention + active_feed_forward + norms; }
};

struct ShapeParameters {
  int64_t embedding = 0;      // with learned positions and the embedding's norm
  int64_t layers = 0;         // all layers, with other_parameters
  int64_t final_norm = 0;     // before the output
  int64_t head = 0;           // 0 where it uses the embedding's matrix, except for its bias
  int64_t active = 0;         // elements that one token uses: all but the experts to which it is not routed
  int64_t prediction = 0;     // layers of multi-token prediction, in no other number here
  int64_t dense_layers = 0;   // number of layers without experts
  int64_t expert_layers = 0;  // number of layers with experts
  int64_t dense_layer = 0;    // elements of one dense layer; 0 without dense layers
  int64_t expert_layer = 0;   // elements of one layer with experts; 0 without experts
  int64_t total() const { return embedding + layers + final_norm + head; }
};
void visit_fields(FieldsOf<ShapeParameters> auto& sums, const auto& visit) {
  visit("total", sums.total());
  visit("active", sums.active);
  visit("embedding", sums.embedding);
  visit("layers", sums.layers);
  visit("final_norm", sums.final_norm);
  visit("head", sums.head);
  visit("prediction", sums.prediction);
  visit("dense_layers", sums.dense_layers);
  visit("expert_layers", sums.expert_layers);
  visit("dense_layer", sums.dense_layer);
  visit("expert_layer", sums.expert_layer);
}

/// All that is wrong, one text each: sizes below their minimum, sizes that do not fit each other, 2^62 parameters or
/// more. Empty for a good shape.
std::vector<std::string> shape_problems(const TransformerShape& shape);

void check_shape(const TransformerShape& shape);  // throws InvalidArgument with all problems

/// Whether a layer (0 to layers - 1) has experts. Example: with dense_layers 3, layers 0 to 2 do not.
LayerKind layer_kind(const TransformerShape& shape, int64_t layer);
int64_t expert_layers(const TransformerShape& shape);  // number of layers with experts

int64_t windowed_layers(
    const TransformerShape& shape);                    // number of layers that attend to the last `window` tokens only
int64_t linear_layers(const TransformerShape& shape);  // number of layers with linear attention

/// The shape has passed `check_shape`.
LayerParameters layer_parameters(const TransformerShape& shape, LayerKind kind);
ShapeParameters shape_parameters(const TransformerShape& shape);

/// Elements of the KV cache of a sequence of `tokens`: keys and values of each KV head, or the latent vector and the
/// rotary key of multi-head latent attention. A layer with a window keeps the last `window` tokens, and one with linear
/// attention its state and the inputs of its convolution.
int64_t cache_elements(const TransformerShape& shape, int64_t tokens);

}  // namespace artifex_devices::planner
