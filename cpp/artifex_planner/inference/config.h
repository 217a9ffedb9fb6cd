// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "artifex_devices/cluster/cluster.h"
#include "artifex_planner/fields.h"
#include "artifex_planner/training/config.h"

namespace artifex_devices::planner {

/// Configuration of a server: each replica has tensor x pipeline devices and works on `batch` sequences per stage.
struct InferenceConfig {
  int64_t tensor = 1;
  int64_t pipeline = 1;
  int64_t expert = 1;  // ways of experts, over the tensor axis: 1 or `tensor`
  int64_t batch = 1;   // sequences that a stage decodes at once
  int64_t prompt = 1;  // tokens
  int64_t output = 1;  // tokens of an answer
  TensorNumbers parameter_bytes = every_tensor(2);
  double cache_bytes = 2;  // of one element of the KV cache
  MatmulFormat format = MatmulFormat::kBFloat16;
};
void visit_fields(FieldsOf<InferenceConfig> auto& config, const auto& visit) {
  visit("tensor", config.tensor);
  visit("pipeline", config.pipeline);
  visit("expert", config.expert);
  visit("batch", config.batch);
  visit("prompt", config.prompt);
  visit("output", config.output);
  visit("parameter_bytes", by_kind<TensorKind>(config.parameter_bytes));
  visit("cache_bytes", config.cache_bytes);
  visit("dtype", config.format);
}

/// Everything that is wrong with the configuration; empty if nothing.
std::string inference_mistakes(const TransformerShape& shape, const Cluster& cluster, const InferenceConfig& config);

/// The forward pass of a batch of `sequence` tokens each, as a configuration of a training step.
TrainingConfig pass_config(const InferenceConfig& config, int64_t sequence);

/// Bytes of one device's part of the KV cache of one sequence, all stages together. Each device has its own KV heads;
/// where there are fewer heads than devices, and for the latent vectors of multi-head latent attention, copies.
double local_cache_bytes(const TransformerShape& shape, const InferenceConfig& config, int64_t tokens);

}  // namespace artifex_devices::planner
