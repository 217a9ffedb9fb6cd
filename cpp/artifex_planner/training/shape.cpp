// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/training/shape.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "artifex_devices/base/throw_error.h"

namespace artifex_devices::planner {

namespace {

constexpr double kMost = 4611686018427387904.0;  // 2^62

/// LayerParameters in numbers that do not overflow, or in integers of a checked shape.
template <class T>
struct Sums {
  T attention = 0, feed_forward = 0, active_feed_forward = 0, norms = 0;
  T total() const { return attention + feed_forward + norms; }
};

template <class T>
T norm_elements(const TransformerShape& shape) {
  if (shape.norm == NormKind::kLayerWithoutParameters) return T{0};
  return static_cast<T>(shape.embed) * (shape.norm == NormKind::kLayer ? 2 : 1);
}

template <class T>
T attention_elements(const TransformerShape& shape) {
  const auto of = [](int64_t size) { return static_cast<T>(size); };
  const T embed = of(shape.embed);
  const T queries = of(shape.heads) * of(shape.head_dim);
  const T values = of(shape.heads) * of(shape.value_head_dim ? shape.value_head_dim : shape.head_dim);
  T sum = values * embed + (shape.attention_out_bias ? embed : T{0});
  if (shape.query_key_norm) sum += 2 * of(shape.head_dim);
  if (shape.joint_query_key_norm) sum += (of(shape.heads) + of(shape.kv_heads)) * of(shape.head_dim);
  if (shape.attention_sinks) sum += of(shape.heads);
  if (shape.kv_lora_rank == 0) {
    const T keys = 2 * of(shape.kv_heads) * of(shape.head_dim);  // and values
    return sum + (embed + (shape.qkv_bias ? 1 : 0)) * (queries * (shape.gated_attention ? 2 : 1) + keys);
  }
  const T q_rank = of(shape.q_lora_rank);
  const T kv_rank = of(shape.kv_lora_rank);
  sum += q_rank > 0 ? embed * q_rank + q_rank + q_rank * queries : embed * queries;
  sum += embed * (kv_rank + of(shape.rope_head_dim)) + kv_rank;
  return sum + kv_rank * (of(shape.heads) * of(shape.nope_head_dim) + values);
}

/// Queries, keys, values and their gate, two factors for each value head, the convolution, one norm and the result.
template <class T>
T linear_attention_elements(const TransformerShape& shape) {
  const auto of = [](int64_t size) { return static_cast<T>(size); };
  const T keys = 2 * of(shape.linear_key_heads) * of(shape.linear_key_dim);  // and queries
  const T values = of(shape.linear_value_heads) * of(shape.linear_value_dim);
  const T products = of(shape.embed) * (keys + 3 * values + 2 * of(shape.linear_value_heads));
  const T convolution = (keys + values) * of(shape.linear_kernel);
  return products + convolution + 2 * of(shape.linear_value_heads) + of(shape.linear_value_dim);
}

template <class T>
T attention_of_all_layers(const TransformerShape& shape) {
  const T linear = static_cast<T>(linear_layers(shape));
  return (static_cast<T>(shape.layers) - linear) * attention_elements<T>(shape) +
         linear * linear_attention_elements<T>(shape);
}

template <class T>
T mlp_elements(const TransformerShape& shape, int64_t width) {
  const T embed = static_cast<T>(shape.embed);
  const T inputs = static_cast<T>(width) * (shape.gated_mlp ? 2 : 1);
  const T products = embed * inputs + static_cast<T>(width) * embed;
  return products + (shape.mlp_bias ? inputs + embed : T{0});
}

template <class T>
Sums<T> layer_sums(const TransformerShape& shape, LayerKind kind) {
  Sums<T> sums;
  sums.attention = attention_of_all_layers<T>(shape) / static_cast<T>(shape.layers);
  sums.norms = static_cast<T>(shape.norms_per_layer) * norm_elements<T>(shape);
  if (kind == LayerKind::kDense) {
    sums.feed_forward = mlp_elements<T>(shape, shape.experts > 0 ? shape.dense_mlp : shape.mlp);
    sums.active_feed_forward = sums.feed_forward;
    return sums;
  }
  const auto of = [](int64_t size) { return static_cast<T>(size); };
  const T router = of(shape.experts) * (of(shape.embed) + (shape.router_bias ? 1 : 0));
  const T shared = of(shape.shared_experts) * mlp_elements<T>(shape, shape.shared_mlp);
  const T always = router + shared + (shape.shared_gate ? of(shape.embed) : T{0});
  const T expert = mlp_elements<T>(shape, shape.mlp);
  sums.feed_forward = always + of(shape.experts) * expert;
  sums.active_feed_forward = always + of(shape.experts_per_token) * expert;
  return sums;
}

template <class T>
T table_elements(const TransformerShape& shape) {
  const T rows = static_cast<T>(shape.vocab) + static_cast<T>(shape.positions);
  return rows * static_cast<T>(shape.embed) + (shape.embedding_norm ? norm_elements<T>(shape) : T{0});
}

template <class T>
T head_elements(const TransformerShape& shape) {
  const T vocab = static_cast<T>(shape.vocab);
  return (shape.tied_embeddings ? T{0} : vocab * static_cast<T>(shape.embed)) + (shape.head_bias ? vocab : T{0});
}

/// Two norms, the product of both inputs, a layer and a norm before the shared output: DeepSeek-V3, section 2.2.
template <class T>
T prediction_elements(const TransformerShape& shape) {
  const LayerKind kind = shape.experts > 0 ? LayerKind::kExperts : LayerKind::kDense;
  const T embed = static_cast<T>(shape.embed);
  const T each = 3 * norm_elements<T>(shape) + 2 * embed * embed + layer_sums<T>(shape, kind).total();
  return static_cast<T>(shape.prediction_layers) * each;
}

using NamedSize = std::pair<const char*, int64_t>;

void add_small_sizes(const TransformerShape& shape, std::vector<std::string>& problems) {
  const std::array<NamedSize, 7> above_zero = {{{"layers", shape.layers},
                                                {"embed", shape.embed},
                                                {"mlp", shape.mlp},
                                                {"heads", shape.heads},
                                                {"kv_heads", shape.kv_heads},
                                                {"head_dim", shape.head_dim},
                                                {"vocab", shape.vocab}}};
  for (const auto& [name, size] : above_zero) {
    if (size < 1) problems.push_back(fmt::format("{} is {}", name, size));
  }
  const std::array<NamedSize, 23> counts = {{{"experts", shape.experts},
                                             {"experts_per_token", shape.experts_per_token},
                                             {"shared_experts", shape.shared_experts},
                                             {"shared_mlp", shape.shared_mlp},
                                             {"expert_groups", shape.expert_groups},
                                             {"groups_per_token", shape.groups_per_token},
                                             {"dense_layers", shape.dense_layers},
                                             {"dense_mlp", shape.dense_mlp},
                                             {"q_lora_rank", shape.q_lora_rank},
                                             {"kv_lora_rank", shape.kv_lora_rank},
                                             {"rope_head_dim", shape.rope_head_dim},
                                             {"nope_head_dim", shape.nope_head_dim},
                                             {"value_head_dim", shape.value_head_dim},
                                             {"window", shape.window},
                                             {"full_attention_period", shape.full_attention_period},
                                             {"linear_key_heads", shape.linear_key_heads},
                                             {"linear_value_heads", shape.linear_value_heads},
                                             {"linear_key_dim", shape.linear_key_dim},
                                             {"linear_value_dim", shape.linear_value_dim},
                                             {"linear_kernel", shape.linear_kernel},
                                             {"positions", shape.positions},
                                             {"prediction_layers", shape.prediction_layers},
                                             {"norms_per_layer", shape.norms_per_layer}}};
  for (const auto& [name, size] : counts) {
    if (size < 0) problems.push_back(fmt::format("{} is {}", name, size));
  }
  if (shape.expert_period < 1) problems.push_back(fmt::format("expert_period is {}", shape.expert_period));
}

void add_expert_problems(const TransformerShape& shape, std::vector<std::string>& problems) {
  if (shape.experts_per_token < std::min<int64_t>(shape.experts, 1) || shape.experts_per_token > shape.experts) {
    problems.push_back(fmt::format("each token is routed to {} of {} experts", shape.experts_per_token, shape.experts));
  }
  if ((shape.shared_experts > 0) != (shape.shared_mlp > 0)) {
    problems.push_back(fmt::format("{} shared_experts have a shared_mlp of {}; set both to 0, or neither",
                                   shape.shared_experts, shape.shared_mlp));
  }
  const bool has_groups = shape.expert_groups > 0 || shape.groups_per_token > 0;
  if (has_groups && (shape.expert_groups < 1 || shape.experts % shape.expert_groups != 0 ||
                     shape.groups_per_token < 1 || shape.groups_per_token > shape.expert_groups ||
                     shape.experts_per_token > shape.experts / shape.expert_groups * shape.groups_per_token)) {
    problems.push_back(fmt::format(
        "each token is routed to {} experts in {} of {} groups of {} experts; the number of groups must divide the "
        "number of experts, and a token's groups must have enough experts",
        shape.experts_per_token, shape.groups_per_token, shape.expert_groups, shape.experts));
  }
  if (shape.dense_layers > shape.layers) {
    problems.push_back(fmt::format("dense_layers is {}, more than {} layers", shape.dense_layers, shape.layers));
  }
  const bool is_mixed = shape.dense_layers > 0 || shape.expert_period > 1;
  if (shape.experts == 0) {
    if (is_mixed || shape.dense_mlp > 0 || shape.shared_experts > 0 || shape.shared_gate || shape.router_bias) {
      problems.push_back("dense_layers, dense_mlp, expert_period, shared experts or router_bias without experts");
    }
  } else if (is_mixed != (shape.dense_mlp > 0)) {
    problems.push_back(
        fmt::format("dense_mlp is {} with dense_layers {} and expert_period {}; it is above 0 if and "
                    "only if some layers have no experts",
                    shape.dense_mlp, shape.dense_layers, shape.expert_period));
  }
}

void add_attention_problems(const TransformerShape& shape, std::vector<std::string>& problems) {
  if (shape.heads % shape.kv_heads != 0) {
    problems.push_back(fmt::format("heads is {}, not a multiple of {} kv_heads", shape.heads, shape.kv_heads));
  }
  if (shape.kv_lora_rank > 0) {
    if (shape.nope_head_dim + shape.rope_head_dim != shape.head_dim || shape.kv_heads != shape.heads) {
      problems.push_back(fmt::format(
          "latent attention (kv_lora_rank {}) has head_dim {} with nope_head_dim {} and rope_head_dim {}, "
          "and {} kv_heads of {} heads; head_dim is the sum of the two, and kv_heads equals heads",
          shape.kv_lora_rank, shape.head_dim, shape.nope_head_dim, shape.rope_head_dim, shape.kv_heads, shape.heads));
    }
    if (shape.qkv_bias || shape.query_key_norm || shape.joint_query_key_norm || shape.gated_attention) {
      problems.push_back("latent attention with qkv_bias, query_key_norm, joint_query_key_norm or gated_attention");
    }
  } else if (shape.q_lora_rank > 0 || shape.rope_head_dim > 0 || shape.nope_head_dim > 0 || shape.value_head_dim > 0) {
    problems.push_back("q_lora_rank, rope_head_dim, nope_head_dim or value_head_dim without kv_lora_rank");
  }
  const std::array<int64_t, 5> linear = {shape.linear_key_heads, shape.linear_value_heads, shape.linear_key_dim,
                                         shape.linear_value_dim, shape.linear_kernel};
  const bool is_linear = std::ranges::any_of(linear, [](int64_t size) { return size > 0; });
  if (is_linear && (std::ranges::count(linear, 0) > 0 || shape.window > 0 || shape.full_attention_period == 0)) {
    problems.push_back(fmt::format(
        "linear attention has linear_key_heads {}, linear_value_heads {}, linear_key_dim {}, linear_value_dim {} and "
        "linear_kernel {}, with full_attention_period {} and window {}; all are above 0, except for window",
        shape.linear_key_heads, shape.linear_value_heads, shape.linear_key_dim, shape.linear_value_dim,
        shape.linear_kernel, shape.full_attention_period, shape.window));
  }
  if (shape.full_attention_period > 0 && shape.window == 0 && !is_linear) {
    problems.push_back(fmt::format("full_attention_period is {} without a window", shape.full_attention_period));
  }
}

double total_estimate(const TransformerShape& shape) {
  const double layer = std::max(layer_sums<double>(shape, LayerKind::kExperts).total(),
                                layer_sums<double>(shape, LayerKind::kDense).total());
  return static_cast<double>(shape.layers) * layer + static_cast<double>(shape.other_parameters) +
         table_elements<double>(shape) + head_elements<double>(shape) + norm_elements<double>(shape) +
         prediction_elements<double>(shape);
}

}  // namespace

std::vector<std::string> shape_problems(const TransformerShape& shape) {
  std::vector<std::string> problems;
  add_small_sizes(shape, problems);
  if (!problems.empty()) return problems;
  add_attention_problems(shape, problems);
  add_expert_problems(shape, problems);
  if (const double total = total_estimate(shape); total >= kMost) {
    problems.push_back(fmt::format("there are {:.2g} parameters, 2**62 or more", total));
  } else if (total < 1) {
    problems.push_back(fmt::format("other_parameters is {}, which leaves no parameters", shape.other_parameters));
  }
  return problems;
}

void check_shape(const TransformerShape& shape) {
  const std::vector<std::string> problems = shape_problems(shape);
  if (problems.empty()) return;
  throw_error("TransformerShape: {}; expected sizes that fit each other; correct each", fmt::join(problems, "; "));
}

LayerKind layer_kind(const TransformerShape& shape, int64_t layer) {
  const int64_t after = layer - shape.dense_layers;
  const bool has_experts = shape.experts > 0 && after >= 0 && (after + 1) % shape.expert_period == 0;
  return has_experts ? LayerKind::kExperts : LayerKind::kDense;
}

int64_t expert_layers(const TransformerShape& shape) {
  return shape.experts > 0 ? (shape.layers - shape.dense_layers) / shape.expert_period : 0;
}

int64_t windowed_layers(const TransformerShape& shape) {
  if (shape.window == 0) return 0;
  return shape.layers - (shape.full_attention_period > 0 ? shape.layers / shape.full_attention_period : 0);
}

int64_t linear_layers(const TransformerShape& shape) {
  return shape.linear_value_heads > 0 ? shape.layers - shape.layers / shape.full_attention_period : 0;
}

LayerParameters layer_parameters(const TransformerShape& shape, LayerKind kind) {
  const auto sums = layer_sums<int64_t>(shape, kind);
  return {sums.attention, sums.feed_forward, sums.active_feed_forward, sums.norms};
}

ShapeParameters shape_parameters(const TransformerShape& shape) {
  const int64_t with_experts = expert_layers(shape);
  const int64_t dense = shape.layers - with_experts;
  const LayerParameters experts = layer_parameters(shape, LayerKind::kExperts);
  const LayerParameters plain = layer_parameters(shape, LayerKind::kDense);
  ShapeParameters sums;
  sums.embedding = table_elements<int64_t>(shape);
  sums.layers = attention_of_all_layers<int64_t>(shape) + dense * (plain.total() - plain.attention) +
                with_experts * (experts.total() - experts.attention) + shape.other_parameters;
  sums.final_norm = norm_elements<int64_t>(shape);
  sums.head = head_elements<int64_t>(shape);
  sums.prediction = prediction_elements<int64_t>(shape);
  sums.active = sums.total() - with_experts * (experts.total() - experts.active());
  sums.dense_layers = dense;
  sums.expert_layers = with_experts;
  if (dense > 0) sums.dense_layer = plain.total();
  if (shape.experts > 0) sums.expert_layer = experts.total();
  return sums;
}

int64_t cache_elements(const TransformerShape& shape, int64_t tokens) {
  const int64_t each =
      shape.kv_lora_rank > 0 ? shape.kv_lora_rank + shape.rope_head_dim : shape.kv_heads * 2 * shape.head_dim;
  const int64_t windowed = windowed_layers(shape);
  const int64_t linear = linear_layers(shape);
  const int64_t keys = shape.linear_key_heads * shape.linear_key_dim;
  const int64_t values = shape.linear_value_heads * shape.linear_value_dim;
  const int64_t state = values * shape.linear_key_dim + (2 * keys + values) * shape.linear_kernel;
  return each * ((shape.layers - windowed - linear) * tokens + windowed * std::min(tokens, shape.window)) +
         linear * state;
}

}  // namespace artifex_devices::planner
