// SPDX-License-Identifier: Apache-2.0
// Structs that Python describes by a dict of their fields: the fields are listed here once, for both directions.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <array>
#include <concepts>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "artifex_devices/base/throw_error.h"
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

/// The value of an enumeration with this name, which is that of the argument or field `key`.
template <class Kind>
Kind kind_named(std::string_view key, std::string_view name) {
  std::optional<Kind> kind;
  if constexpr (std::same_as<Kind, MatmulFormat>) {
    kind = matmul_format_from_name(name);
  } else {
    kind = kind_from_name<Kind>(name);
  }
  if (!kind) throw_error("{} is {:?}; expected one of the documented names; correct it", key, name);
  return *kind;
}

/// Reads one field. Overloads are for values that Python spells in another way.
template <class Value>
Value value_from_python(const char* key, pybind11::handle value, const Value& /*default*/) {
  if constexpr (std::is_enum_v<Value>) {
    return kind_named<Value>(key, value.cast<std::string>());
  } else {
    return value.cast<Value>();
  }
}

inline SourcedNumber value_from_python(const char* /*key*/, pybind11::handle value, const SourcedNumber& /*default*/) {
  auto [number, source] = value.cast<std::pair<double, std::string>>();
  return {number, std::move(source)};
}

inline ContextChoice value_from_python(const char* key, pybind11::handle value, const ContextChoice& /*default*/) {
  const auto [method, overlap] = value.cast<std::pair<std::string, double>>();
  return {kind_named<ContextMethod>(key, method), overlap};
}

inline Dims value_from_python(const char* /*key*/, pybind11::handle value, const Dims& /*default*/) {
  return Dims(value.cast<std::vector<int64_t>>());
}

template <class Value>
std::vector<Value> value_from_python(const char* key, pybind11::handle values, const std::vector<Value>& /*default*/) {
  std::vector<Value> result;
  for (const pybind11::handle value : values) result.push_back(value_from_python(key, value, Value{}));
  return result;
}

/// A number for each kind, by its name.
template <class Kind, size_t count>
std::array<double, count> numbers_by_kind(pybind11::handle from) {
  std::array<double, count> result{};
  const auto numbers = from.cast<pybind11::dict>();
  for (size_t i = 0; i < count; ++i) result[i] = numbers[kKindNames<Kind>[i].data()].template cast<double>();
  return result;
}

inline TensorNumbers value_from_python(const char* /*key*/, pybind11::handle value, const TensorNumbers& /*default*/) {
  return numbers_by_kind<TensorKind, kTensorKindCount>(value);
}

using TrafficNumbers = std::array<double, kTrafficCount>;
inline TrafficNumbers value_from_python(const char* /*key*/, pybind11::handle value, const TrafficNumbers& /*none*/) {
  return numbers_by_kind<Traffic, kTrafficCount>(value);
}

/// Writes one field: a number or text, an enumeration by its name.
template <class Value>
pybind11::object value_to_python(const Value& value) {
  if constexpr (std::is_enum_v<Value>) {
    return pybind11::cast(std::string(to_string(value)));
  } else {
    return pybind11::cast(value);
  }
}
inline pybind11::object value_to_python(const SourcedNumber& number) {
  return pybind11::make_tuple(number.value, number.source);
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

/// The fields that are numbers, texts and enumerations, and sourced numbers.
template <Described Struct>
pybind11::dict fields_dict(const Struct& from) {
  pybind11::dict result;
  visit_fields(from, [&](const char* name, const auto& field) {
    using Field = std::remove_cvref_t<decltype(field)>;
    if constexpr (std::is_enum_v<Field> || std::is_arithmetic_v<Field> || std::same_as<Field, SourcedNumber>) {
      result[name] = value_to_python(field);
    }
  });
  return result;
}

}  // namespace artifex_devices::planner::bindings

namespace pybind11::detail {

/// Described structs are dicts in Python. A field that is None has the struct's default.
template <artifex_devices::planner::bindings::Described Struct>
class type_caster<Struct> {
 public:
  PYBIND11_TYPE_CASTER(Struct, const_name("dict"));
  bool load(handle from, bool /*convert*/) {
    if (!isinstance<dict>(from)) return false;
    const auto fields = reinterpret_borrow<dict>(from);
    artifex_devices::planner::bindings::visit_fields(value, [&](const char* key, auto& field) {
      const object given = fields[key];
      if (!given.is_none()) field = artifex_devices::planner::bindings::value_from_python(key, given, field);
    });
    return true;
  }
  static handle cast(const Struct& from, return_value_policy /*policy*/, handle /*parent*/) {
    return artifex_devices::planner::bindings::fields_dict(from).release();
  }
};

}  // namespace pybind11::detail
