// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "artifex_planner/fields.h"
#include "artifex_planner/training/time.h"

namespace artifex_devices::planner {

/// Configuration of a server: each replica has tensor x pipeline devices and works on `batch` sequences per stage.
struct InferenceConfig {
  int64_t tensor = 1;
  int64_t pipeline = 1;
  int64_t expert = 1;  // ways of experts, over the tensor axis: 1 or `tensor`
  int64_t batch = 1;   // sequences that a stage decodes at once
  int64_t prompt = 1;  // tokens
  int64_t output = 1;  // tokens of an answer
  double parameter_bytes = 2;
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
  visit("parameter_bytes", config.parameter_bytes);
  visit("cache_bytes", config.cache_bytes);
  visit("dtype", config.format);
}

/// Seconds of a step of a replica, of one kind of rates.
struct InferenceSeconds {
  double prefill = 0;            // of `batch` prompts: the time to the first token
  double decode = 0;             // of one token of each sequence, half of the answer written
  double last_decode = 0;        // of the last token
  double request = 0;            // of a complete answer
  double tokens_per_second = 0;  // that all replicas write while they decode
};
void visit_fields(FieldsOf<InferenceSeconds> auto& seconds, const auto& visit) {
  visit("prefill", seconds.prefill);
  visit("decode", seconds.decode);
  visit("last_decode", seconds.last_decode);
  visit("request", seconds.request);
  visit("tokens_per_second", seconds.tokens_per_second);
}

struct InferencePlan {
  int64_t replicas = 1;
  int64_t parameters = 0;  // bytes of a device
  int64_t cache = 0;       // bytes of a device, all answers complete
  int64_t working = 0;     // bytes of a device
  int64_t available = 0;   // bytes of a device
  InferenceSeconds roofline;
  InferenceSeconds expected;
  int64_t largest_batch = 0;    // sequences of a stage that fit, with this prompt and output
  int64_t longest_context = 0;  // tokens of a sequence that fit, with this batch
  int64_t memory() const noexcept { return parameters + cache + working; }
};
void visit_fields(FieldsOf<InferencePlan> auto& plan, const auto& visit) {
  visit("replicas", plan.replicas);
  visit("parameters", plan.parameters);
  visit("cache", plan.cache);
  visit("working", plan.working);
  visit("memory", plan.memory());
  visit("available", plan.available);
  visit("roofline", plan.roofline);
  visit("expected", plan.expected);
  visit("largest_batch", plan.largest_batch);
  visit("longest_context", plan.longest_context);
}

/// Plans prefill and decoding. Decoding reads all parameters and the KV cache of all sequences for each token; products
/// take the longer of FLOPs and bytes. Throws InvalidArgument for a configuration that does not fit the model or the
/// cluster, Unavailable for rates that are not known.
InferencePlan plan_inference(const TransformerShape& shape, const Cluster& cluster, const InferenceConfig& config,
                             const Efficiency& efficiency);

}  // namespace artifex_devices::planner
