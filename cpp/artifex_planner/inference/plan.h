// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "artifex_planner/fields.h"
#include "artifex_planner/inference/config.h"
#include "artifex_planner/inference/decode.h"

namespace artifex_devices::planner {

/// Seconds of a replica, of one kind of rates.
struct InferenceSeconds {
  double prefill = 0;            // of `batch` prompts: the time to the first token if they arrive at once
  double decode = 0;             // from one token of a request to the next, with the prompts of others between them
  double step = 0;               // one token of each sequence, half of the answer written
  double last_step = 0;          // the last token of each sequence
  double request = 0;            // a batch of complete answers
  double tokens_per_second = 0;  // that all replicas write
  std::array<double, kDecodePartCount> parts{};  // of `step`
};
void visit_fields(FieldsOf<InferenceSeconds> auto& seconds, const auto& visit) {
  visit("prefill", seconds.prefill);
  visit("decode", seconds.decode);
  visit("step", seconds.step);
  visit("last_step", seconds.last_step);
  visit("request", seconds.request);
  visit("tokens_per_second", seconds.tokens_per_second);
  visit("parts", by_kind<DecodePart>(seconds.parts));
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

/// Plans prefill, as the forward pass of a training step, and decoding, as DecodePricer describes it. Throws
/// InvalidArgument for a configuration that does not fit the model or the cluster, Unavailable for rates that are not
/// known.
InferencePlan plan_inference(const TransformerShape& shape, const Cluster& cluster, const InferenceConfig& config,
                             const Efficiency& efficiency);

}  // namespace artifex_devices::planner
