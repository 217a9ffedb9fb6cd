// SPDX-License-Identifier: Apache-2.0
// Structs that Python describes by a dict of their fields: the fields are listed here once, for both directions.
#pragma once

#include <concepts>
#include <type_traits>

#include "artifex_planner/inference/plan.h"
#include "artifex_planner/kind_names.h"
#include "artifex_planner/step/description.h"
#include "artifex_planner/training/search.h"

namespace artifex_devices::planner::bindings {

template <class Given, class Struct>
concept FieldsOf = std::same_as<std::remove_const_t<Given>, Struct>;

/// Each calls `visit(name, field)` with every field of a struct and its name in Python.
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
  visit("positions", shape.positions);
  visit("prediction_layers", shape.prediction_layers);
  visit("norms_per_layer", shape.norms_per_layer);
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
  visit("embedding_norm", shape.embedding_norm);
  visit("parallel_layers", shape.parallel_layers);
}

void visit_fields(FieldsOf<Efficiency> auto& efficiency, const auto& visit) {
  for (size_t i = 0; i < efficiency.factors.size(); ++i) visit(kKindNames<Factor>[i].data(), efficiency.factors[i]);
}

void visit_fields(FieldsOf<TrainingConfig> auto& config, const auto& visit) {
  visit("tensor", config.tensor);
  visit("context", config.context);
  visit("context_method", config.context_method);
  visit("data", config.data);
  visit("pipeline", config.pipeline);
  visit("expert", config.expert);
  visit("expert_tensor", config.expert_tensor);
  visit("sequence_parallel", config.sequence_parallel);
  visit("schedule", config.schedule);
  visit("chunks", config.chunks);
  visit("zero", config.zero);
  visit("zero_shards", config.zero_shards);
  visit("microbatch", config.microbatch);
  visit("batch", config.batch);
  visit("sequence", config.sequence);
  visit("recompute", config.recompute);
  visit("recompute_method", config.recompute_method);
  visit("recompute_layers", config.recompute_layers);
  visit("optimizer", config.optimizer);
  visit("parameter_bytes", config.parameter_bytes);
  visit("gradient_bytes", config.gradient_bytes);
  visit("activation_bytes", config.activation_bytes);
  visit("dtype", config.format);
  visit("flash_attention", config.flash_attention);
  visit("causal", config.causal);
  visit("dropout", config.dropout);
  visit("offload_optimizer", config.offload_optimizer);
  visit("offload_activations", config.offload_activations);
  visit("expert_imbalance", config.expert_imbalance);
  visit("expert_capacity", config.expert_capacity);
  visit("expert_padding", config.expert_padding);
  visit("sharp", config.sharp);
  visit("overlap", config.overlap);
}

void visit_fields(FieldsOf<TrainingSpace> auto& space, const auto& visit) {
  visit("base", space.base);
  visit("devices", space.devices);
  visit("tensor", space.tensor);
  visit("context", space.context);
  visit("pipeline", space.pipeline);
  visit("chunks", space.chunks);
  visit("expert", space.expert);
  visit("microbatch", space.microbatch);
  visit("zero_shards", space.zero_shards);
  visit("context_method", space.context_method);
  visit("zero", space.zero);
  visit("optimizer", space.optimizer);
  visit("recompute", space.recompute);
  visit("recompute_parts", space.recompute_parts);
  visit("recompute_layers", space.recompute_layers);
  visit("offload_optimizer", space.offload_optimizer);
  visit("offload_activations", space.offload_activations);
  visit("interleaved_overlap", space.interleaved_overlap);
  visit("memory_limit", space.memory_limit);
  visit("host_limit", space.host_limit);
  visit("top", space.top);
}

void visit_fields(FieldsOf<InferenceConfig> auto& config, const auto& visit) {
  visit("tensor", config.tensor);
  visit("pipeline", config.pipeline);
  visit("expert", config.expert);
  visit("batch", config.batch);
  visit("prompt", config.prompt);
  visit("output", config.output);
  visit("parameter_bytes", config.parameter_bytes);
  visit("cache_bytes", config.cache_bytes);
  visit("dtype", config.format);
}

void visit_fields(FieldsOf<TensorDescription> auto& tensor, const auto& visit) {
  visit("name", tensor.name);
  visit("shape", tensor.shape);
  visit("axes", tensor.axes);
  visit("dtype", tensor.dtype);
  visit("itemsize", tensor.itemsize);
  visit("role", tensor.role);
  visit("count", tensor.count);
  visit("is_kept", tensor.is_kept);
  visit("is_on_chip", tensor.is_on_chip);
}

void visit_fields(FieldsOf<OperationDescription> auto& operation, const auto& visit) {
  visit("name", operation.name);
  visit("einsum", operation.einsum);
  visit("inputs", operation.inputs);
  visit("output", operation.output);
  visit("kind", operation.kind);
  visit("count", operation.count);
  visit("dtype", operation.dtype);
  visit("is_recomputed", operation.is_recomputed);
}

void visit_fields(FieldsOf<OptimizerDescription> auto& optimizer, const auto& visit) {
  visit("bytes_per_parameter", optimizer.bytes_per_parameter);
  visit("gradient_itemsize", optimizer.gradient_itemsize);
  visit("holds_gradients", optimizer.holds_gradients);
}

void visit_fields(FieldsOf<StepDescription> auto& step, const auto& visit) {
  visit("tensors", step.tensors);
  visit("operations", step.operations);
  visit("tokens", step.tokens);
  visit("batch_axes", step.batch_axes);
  visit("optimizer", step.optimizer);
}

struct AnyVisit {
  void operator()(const char* name, auto& field) const;
};
/// Numbers by the names of their kinds.
template <class Kind, size_t count>
pybind11::dict dict_by_kind(const std::array<double, count>& numbers) {
  pybind11::dict result;
  for (size_t i = 0; i < count; ++i) result[kKindNames<Kind>[i].data()] = numbers[i];
  return result;
}

template <class Struct>
concept Described = requires(Struct& value) { visit_fields(value, AnyVisit{}); };

}  // namespace artifex_devices::planner::bindings
