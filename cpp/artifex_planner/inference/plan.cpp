// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/inference/plan.h"

#include <algorithm>

#include "artifex_devices/base/throw_error.h"
#include "artifex_planner/training/memory.h"
#include "artifex_planner/training/model.h"
#include "artifex_planner/training/pass.h"

namespace artifex_devices::planner {
namespace {

constexpr int64_t kLongest = int64_t{1} << 40;

/// The forward pass of the prompts. Only the last token of each sequence has logits.
/// Nothing is stored for a backward pass, and element-wise kernels are fused: they reach the bandwidth of decoding.
double prefill_seconds(const TrainingModel& model, const TrainingConfig& config, const DecodePricer& decoding,
                       const TrainingHardware& hardware, TrainingLinks& links) {
  const Efficiency& efficiency = decoding.streaming();
  PassPricer pricer(model, config, hardware, links, efficiency);
  PassSeconds sum = pricer.embedding(false);
  const int64_t dense = model.shape.layers - model.layers_with_experts;
  if (dense > 0) sum.add(pricer.layer(LayerKind::kDense, false), to_real(dense));
  if (model.layers_with_experts > 0) {
    sum.add(pricer.layer(LayerKind::kExperts, false), to_real(model.layers_with_experts));
  }
  sum.products += decoding.head();
  const double stream = pricer.tokens() * to_real(model.shape.embed) * config.activation_bytes;
  const double sends = config.pipeline > 1 ? to_real(config.pipeline - 1) *
                                                 links.send_seconds(stream, config.pipeline, config.tensor, efficiency)
                                           : 0;
  return sum.compute() + sum.tensor + sum.expert + sum.fixed + sends;
}

InferenceSeconds inference_seconds(const TrainingModel& model, const InferenceConfig& config, int64_t replicas,
                                   const TrainingHardware& hardware, TrainingLinks& links,
                                   const Efficiency& efficiency) {
  DecodePricer decoding(model, config, hardware, links, efficiency);
  InferenceSeconds seconds;
  seconds.prefill = prefill_seconds(model, pass_config(config, config.prompt), decoding, hardware, links);
  const DecodeSeconds middle = decoding.step(config.prompt + config.output / 2);
  seconds.parts = middle.parts;
  seconds.step = middle.total();
  seconds.last_step = decoding.step(config.prompt + config.output).total();
  const double batch = to_real(config.batch);
  const double output = to_real(config.output);
  // While a request writes its answer, each other request of the batch ends once, and a prompt takes its place.
  seconds.decode = seconds.step + seconds.prefill * (batch - 1) / batch / output;
  seconds.request = seconds.prefill + seconds.step * (output - 1);
  seconds.tokens_per_second = to_real(replicas * config.pipeline) * batch * output / seconds.request;
  return seconds;
}

}  // namespace

InferencePlan plan_inference(const TransformerShape& shape, const Cluster& cluster, const InferenceConfig& config,
                             const Efficiency& efficiency) {
  const TrainingModel model = training_model(shape);
  std::string wrong = inference_mistakes(shape, cluster, config);
  const std::string factors = efficiency_mistakes(efficiency);
  if (!factors.empty()) wrong += (wrong.empty() ? "" : "; ") + factors;
  if (!wrong.empty()) throw_error("plan_inference: {}; correct the arguments", wrong);
  const TrainingHardware hardware = training_hardware(cluster, "plan_inference");
  TrainingLinks links(cluster);
  InferencePlan plan;
  plan.replicas = cluster.device_count() / (config.tensor * config.pipeline);
  plan.available = hardware.device.memory_bytes;
  const TrainingConfig prefill = pass_config(config, config.prompt);
  double parameters = 0;
  for (const StageLayers& stage : layers_of_stages(model, prefill)) {
    const LocalParameters::Bytes bytes = stage_parameters(model, prefill, stage).bytes(config.parameter_bytes);
    parameters = std::max(parameters, bytes.dense + bytes.experts);
  }
  plan.parameters = whole_bytes(parameters);
  // Each stage has its layers of the cache of `pipeline` batches.
  const int64_t context = config.prompt + config.output;
  plan.cache = whole_bytes(to_real(config.batch) * local_cache_bytes(shape, config, context));
  // One layer's activations of a prompt, and the logits of each sequence's last token.
  const LayerKind kind = model.layers_with_experts > 0 ? LayerKind::kExperts : LayerKind::kDense;
  const double logits = 4 * to_real(config.batch * shape.vocab) / to_real(config.tensor);
  const double working = layer_activations(model, prefill, kind).complete + logits;
  plan.working = whole_bytes(working);
  plan.roofline = inference_seconds(model, config, plan.replicas, hardware, links, ideal_efficiency());
  plan.expected = inference_seconds(model, config, plan.replicas, hardware, links, efficiency);
  const double room = to_real(plan.available) - parameters;
  const double each = working / to_real(config.batch) + local_cache_bytes(shape, config, context);
  plan.largest_batch = std::max<int64_t>(0, static_cast<int64_t>(room / each));
  // Windows make the cache's growth uneven: search instead of dividing.
  const double space = room - working;
  int64_t low = 0;
  int64_t high = 1;
  const auto is_small = [&](int64_t tokens) {
    return to_real(config.batch) * local_cache_bytes(shape, config, tokens) <= space;
  };
  while (high < kLongest && is_small(high)) high *= 2;
  while (low + 1 < high) {
    const int64_t middle = low + (high - low) / 2;
    (is_small(middle) ? low : high) = middle;
  }
  plan.longest_context = space < 0 ? 0 : low;
  return plan;
}

}  // namespace artifex_devices::planner
