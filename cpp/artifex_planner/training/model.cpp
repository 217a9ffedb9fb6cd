// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/training/model.h"

#include <algorithm>

namespace artifex_devices::planner {

namespace {

using Split = LayerProduct::Split;

std::vector<LayerProduct> attention_products(const TransformerShape& shape, double value_dim) {
  const double h = to_real(shape.embed);
  const double queries = to_real(shape.heads * shape.head_dim);
  const double out = to_real(shape.heads) * value_dim;
  if (shape.kv_lora_rank == 0) {
    const double pairs = to_real(shape.kv_heads) * (to_real(shape.head_dim) + value_dim);
    const double gated = queries * (shape.gated_attention ? 2 : 1);
    return {{h, gated, Split::kColumns, 0}, {h, pairs, Split::kColumns, shape.kv_heads}, {out, h, Split::kRows, 0}};
  }
  std::vector<LayerProduct> products;
  if (shape.q_lora_rank > 0) {
    products.push_back({h, to_real(shape.q_lora_rank), Split::kNone, 0});
    products.push_back({to_real(shape.q_lora_rank), queries, Split::kColumns, 0});
  } else {
    products.push_back({h, queries, Split::kColumns, 0});
  }
  products.push_back({h, to_real(shape.kv_lora_rank + shape.rope_head_dim), Split::kNone, 0});
  const double each = to_real(shape.nope_head_dim) + value_dim;
  products.push_back({to_real(shape.kv_lora_rank), to_real(shape.heads) * each, Split::kColumns, 0});
  products.push_back({out, h, Split::kRows, 0});
  return products;
}

/// The products of both kinds of layers, each as narrow as its share of the layers, so their sums are those of all.
std::vector<LayerProduct> mixed_products(const TransformerShape& shape, std::vector<LayerProduct> products) {
  const double part = to_real(linear_layers(shape)) / to_real(shape.layers);
  if (part <= 0) return products;
  for (LayerProduct& each : products) (each.split == Split::kRows ? each.inner : each.columns) *= 1 - part;
  const double h = to_real(shape.embed);
  const double keys = to_real(shape.linear_key_heads * shape.linear_key_dim);
  const double values = to_real(shape.linear_value_heads * shape.linear_value_dim);
  const double inputs = 2 * keys + 2 * values + 2 * to_real(shape.linear_value_heads);
  products.push_back({h, part * inputs, Split::kColumns, shape.linear_key_heads});
  products.push_back({part * values, h, Split::kRows, 0});
  return products;
}

std::vector<LayerProduct> mlp_products(const TransformerShape& shape, double width) {
  if (width <= 0) return {};
  const double h = to_real(shape.embed);
  return {{h, width * (shape.gated_mlp ? 2 : 1), Split::kColumns, 0}, {width, h, Split::kRows, 0}};
}

double elements(const std::vector<LayerProduct>& products) {
  double sum = 0;
  for (const LayerProduct& each : products) sum += each.inner * each.columns;
  return sum;
}

}  // namespace

TrainingModel training_model(const TransformerShape& shape) {
  check_shape(shape);
  TrainingModel model{shape, shape_parameters(shape), {}, expert_layers(shape), windowed_layers(shape), 0};
  model.value_dim = to_real(shape.value_head_dim > 0 ? shape.value_head_dim : shape.head_dim);
  TrainingLayer& dense = model.layers[static_cast<size_t>(LayerKind::kDense)];
  dense.attention = mixed_products(shape, attention_products(shape, model.value_dim));
  const double others = to_real(shape.other_parameters) / to_real(shape.layers);
  dense.mlp_width = to_real(shape.experts > 0 ? shape.dense_mlp : shape.mlp);
  dense.mlp = mlp_products(shape, dense.mlp_width);
  if (shape.experts == 0 || model.layers_with_experts < shape.layers) {
    const double all = to_real(layer_parameters(shape, LayerKind::kDense).total());
    dense.other_parameters = std::max(0.0, all - elements(dense.attention) - elements(dense.mlp)) + others;
  }
  if (shape.experts > 0) {
    TrainingLayer& sparse = model.layers[static_cast<size_t>(LayerKind::kExperts)];
    sparse.attention = dense.attention;
    sparse.mlp_width = to_real(shape.shared_experts * shape.shared_mlp);
    sparse.mlp = mlp_products(shape, sparse.mlp_width);
    sparse.mlp.push_back({to_real(shape.embed), to_real(shape.experts), Split::kNone, 0});  // the router
    sparse.router_parameters = to_real(shape.embed * shape.experts);
    sparse.expert = mlp_products(shape, to_real(shape.mlp));
    sparse.expert_parameters = to_real(shape.experts) * elements(sparse.expert);
    const double all = to_real(layer_parameters(shape, LayerKind::kExperts).total());
    const double products = elements(sparse.attention) + elements(sparse.mlp) + sparse.expert_parameters;
    sparse.other_parameters = std::max(0.0, all - products) + others;
  }
  return model;
}

namespace {

/// Tokens whose products of attention have as many FLOPs as the gated delta rule has for one token: it decays, reads
/// and updates a state of key x value elements, and attends within blocks of 64 tokens.
double tokens_of_linear_attention(const TrainingModel& model) noexcept {
  const TransformerShape& shape = model.shape;
  const double key = to_real(shape.linear_key_dim);
  const double value = to_real(shape.linear_value_dim);
  const double each = to_real(shape.linear_value_heads) * (3 * key * value + 64 * (key + value));
  return each / (to_real(shape.heads) * (to_real(shape.head_dim) + model.value_dim));
}

}  // namespace

double attended_tokens(const TrainingModel& model, double sequence, bool is_causal) noexcept {
  if (const double linear = to_real(linear_layers(model.shape)) / to_real(model.shape.layers); linear > 0) {
    return (1 - linear) * (is_causal ? sequence / 2 : sequence) + linear * tokens_of_linear_attention(model);
  }
  const double part = to_real(model.layers_with_window) / to_real(model.shape.layers);
  const double window = to_real(model.shape.window);
  const double whole = is_causal ? sequence / 2 : sequence;
  if (part <= 0 || window >= sequence) return whole;
  // A causal window: the first tokens see fewer than `window`.
  const double seen = is_causal ? window - window * window / (2 * sequence) : std::min(2 * window, sequence);
  return (1 - part) * whole + part * std::min(seen, whole);
}

double model_flops(const TrainingModel& model, double sequences, double sequence) noexcept {
  const TransformerShape& shape = model.shape;
  const TrainingLayer& dense = model.layer(LayerKind::kDense);
  const TrainingLayer& sparse = model.layer(LayerKind::kExperts);
  const double with_experts = to_real(model.layers_with_experts);
  double used =
      to_real(shape.layers) * elements(dense.attention) + (to_real(shape.layers) - with_experts) * elements(dense.mlp);
  used += with_experts * (elements(sparse.mlp) + to_real(shape.experts_per_token) * elements(sparse.expert));
  used += to_real(shape.vocab * shape.embed);
  const double linear = to_real(linear_layers(shape));
  const double seen = (to_real(shape.layers) - linear) * sequence + linear * tokens_of_linear_attention(model);
  const double attention = 6 * to_real(shape.heads) * (to_real(shape.head_dim) + model.value_dim) * seen;
  return sequences * sequence * (6 * used + attention);
}

}  // namespace artifex_devices::planner
