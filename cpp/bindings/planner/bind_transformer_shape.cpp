// SPDX-License-Identifier: Apache-2.0
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "artifex_planner/training/model.h"
#include "bind_planner.h"

namespace artifex_devices::planner::bindings {

namespace py = pybind11;

TransformerShape shape_from_python(const py::dict& from) {
  TransformerShape shape;
  shape.name = from["name"].cast<std::string>();
  shape.norm = norm_from_name(from["norm"].cast<std::string>());
  const auto size = [&](const char* name, int64_t& to) { to = from[name].cast<int64_t>(); };
  size("layers", shape.layers);
  size("embed", shape.embed);
  size("mlp", shape.mlp);
  size("heads", shape.heads);
  size("kv_heads", shape.kv_heads);
  size("head_dim", shape.head_dim);
  size("vocab", shape.vocab);
  size("experts", shape.experts);
  size("experts_per_token", shape.experts_per_token);
  size("shared_experts", shape.shared_experts);
  size("shared_mlp", shape.shared_mlp);
  size("dense_layers", shape.dense_layers);
  size("dense_mlp", shape.dense_mlp);
  size("expert_period", shape.expert_period);
  size("expert_groups", shape.expert_groups);
  size("groups_per_token", shape.groups_per_token);
  size("q_lora_rank", shape.q_lora_rank);
  size("kv_lora_rank", shape.kv_lora_rank);
  size("rope_head_dim", shape.rope_head_dim);
  size("nope_head_dim", shape.nope_head_dim);
  size("value_head_dim", shape.value_head_dim);
  size("window", shape.window);
  size("full_attention_period", shape.full_attention_period);
  size("positions", shape.positions);
  size("prediction_layers", shape.prediction_layers);
  size("norms_per_layer", shape.norms_per_layer);
  const auto flag = [&](const char* name, bool& to) { to = from[name].cast<bool>(); };
  flag("tied_embeddings", shape.tied_embeddings);
  flag("gated_mlp", shape.gated_mlp);
  flag("qkv_bias", shape.qkv_bias);
  flag("attention_out_bias", shape.attention_out_bias);
  flag("mlp_bias", shape.mlp_bias);
  flag("head_bias", shape.head_bias);
  flag("router_bias", shape.router_bias);
  flag("shared_gate", shape.shared_gate);
  flag("query_key_norm", shape.query_key_norm);
  flag("embedding_norm", shape.embedding_norm);
  flag("parallel_layers", shape.parallel_layers);
  return shape;
}

namespace {

/// The arguments of ShapeParameters.
py::dict parameters_dict(const py::dict& from) {
  const TransformerShape shape = shape_from_python(from);
  check_shape(shape);
  const ShapeParameters sums = shape_parameters(shape);
  py::dict result;
  result["total"] = sums.total();
  result["active"] = sums.active;
  result["embedding"] = sums.embedding;
  result["layers"] = sums.layers;
  result["final_norm"] = sums.final_norm;
  result["head"] = sums.head;
  result["prediction"] = sums.prediction;
  result["dense_layers"] = shape.layers - expert_layers(shape);
  result["expert_layers"] = expert_layers(shape);
  const bool has_dense = expert_layers(shape) < shape.layers;
  result["dense_layer"] = has_dense ? layer_parameters(shape, LayerKind::kDense).total() : 0;
  result["expert_layer"] = shape.experts > 0 ? layer_parameters(shape, LayerKind::kExperts).total() : 0;
  return result;
}

int64_t cache_of(const py::dict& from, int64_t tokens) {
  const TransformerShape shape = shape_from_python(from);
  check_shape(shape);
  return cache_elements(shape, tokens);
}

}  // namespace

void bind_transformer_shape(py::module_& module) {
  module.def(
      "shape_problems", [](const py::dict& shape) { return shape_problems(shape_from_python(shape)); },
      py::arg("shape"), "Everything that is inconsistent in the sizes of a decoder, one text each.");
  module.def("shape_parameters", &parameters_dict, py::arg("shape"), "The arguments of ShapeParameters.");
  module.def("cache_elements", &cache_of, py::arg("shape"), py::arg("tokens"),
             "Elements of the KV cache of a sequence.");
}

}  // namespace artifex_devices::planner::bindings
