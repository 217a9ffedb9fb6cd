// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "artifex_planner/training/time.h"

namespace artifex_devices::planner {

/// How requests are served: each replica has tensor x pipeline devices and works on `batch` sequences for each stage.
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

/// Seconds of a step of a replica, of one kind of rates.
struct InferenceSeconds {
  double prefill = 0;      // of `batch` prompts: the time to the first token
  double decode = 0;       // of one token of each sequence, half of the answer written
  double last_decode = 0;  // of the last token
  double request(const InferenceConfig& config) const noexcept {
    return prefill + decode * static_cast<double>(config.output - 1);
  }
};

struct InferencePlan {
  InferenceConfig config;
  int64_t replicas = 1;
  double parameters = 0;  // bytes of a device
  double cache = 0;       // bytes of a device, all answers complete
  double working = 0;
  double available = 0;
  InferenceSeconds roofline;
  InferenceSeconds expected;
  int64_t largest_batch = 0;    // sequences of a stage that fit, with this prompt and output
  int64_t longest_context = 0;  // tokens of a sequence that fit, with this batch
  /// Tokens that all replicas write in a second while they decode.
  double tokens_per_second(const InferenceSeconds& seconds) const noexcept;
};

/// Plans prefill and decoding. Decoding reads all parameters and the KV cache of all sequences for each token; products
/// take the longer of FLOPs and bytes. Throws InvalidArgument for a configuration that does not fit the model or the
/// cluster, Unavailable for rates that are not known.
InferencePlan plan_inference(const TransformerShape& shape, const Cluster& cluster, const InferenceConfig& config,
                             const Efficiency& efficiency);

}  // namespace artifex_devices::planner
