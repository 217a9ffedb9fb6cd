// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/inference/plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "artifex_devices/base/throw_error.h"
#include "artifex_planner/training/model.h"
#include "artifex_planner/training/time.h"

namespace artifex_devices::planner {
namespace {

constexpr int64_t kLongest = int64_t{1} << 40;

std::string inference_mistakes(const TransformerShape& shape, const Cluster& cluster, const InferenceConfig& c) {
  std::vector<std::string> wrong;
  for (const auto& [name, value] :
       {std::pair{"tensor", c.tensor}, std::pair{"pipeline", c.pipeline}, std::pair{"expert", c.expert},
        std::pair{"batch", c.batch}, std::pair{"prompt", c.prompt}, std::pair{"output", c.output}}) {
    if (value < 1 || value > kMostTrainingCount) {
      wrong.push_back(fmt::format("{} is {}, expected 1 to {}", name, value, kMostTrainingCount));
    }
  }
  for (const auto& [name, value] :
       {std::pair{"parameter_bytes", c.parameter_bytes}, std::pair{"cache_bytes", c.cache_bytes}}) {
    if (!(value > 0 && value <= 16))
      wrong.push_back(fmt::format("{} is {}, expected above 0, at most 16", name, value));
  }
  if (!wrong.empty()) return fmt::format("{}", fmt::join(wrong, "; "));
  const int64_t devices = c.tensor * c.pipeline;
  if (cluster.device_count() % devices != 0) {
    wrong.push_back(fmt::format("tensor {} x pipeline {} are {} devices, expected a divisor of the cluster's {}",
                                c.tensor, c.pipeline, devices, cluster.device_count()));
  }
  if (shape.heads % c.tensor != 0) {
    wrong.push_back(fmt::format("tensor is {}, expected a divisor of {} heads", c.tensor, shape.heads));
  }
  if (c.pipeline > shape.layers) {
    wrong.push_back(fmt::format("pipeline is {}, expected at most {} layers", c.pipeline, shape.layers));
  }
  if (c.expert != 1 && (c.expert != c.tensor || shape.experts % c.expert != 0)) {
    wrong.push_back(fmt::format("expert is {}, expected 1, or tensor, {}, as a divisor of {} experts", c.expert,
                                c.tensor, shape.experts));
  }
  return fmt::format("{}", fmt::join(wrong, "; "));
}

TrainingConfig pass_config(const InferenceConfig& c, int64_t sequence) {
  TrainingConfig config;
  config.tensor = c.tensor;
  config.pipeline = c.pipeline;
  config.expert = c.expert;
  config.expert_tensor = c.expert > 1 ? 1 : c.tensor;
  config.microbatch = c.batch;
  config.batch = c.batch;
  config.sequence = sequence;
  config.format = c.format;
  config.parameter_bytes = every_tensor(c.parameter_bytes);
  return config;
}

/// Bytes of one device's part of the KV cache of one sequence, all stages together.
double cache_of(const TransformerShape& shape, const InferenceConfig& c, int64_t tokens) {
  const int64_t ways = shape.kv_lora_rank > 0 ? 1 : std::min(c.tensor, shape.kv_heads);
  return to_real(cache_elements(shape, tokens)) * c.cache_bytes / to_real(ways);
}

/// A forward pass; `last` describes the last token of each sequence, because only that token has logits.
double forward_seconds(const TrainingModel& model, const TrainingConfig& config, const TrainingConfig& last,
                       const TrainingHardware& hardware, TrainingLinks& links, const Efficiency& efficiency) {
  PassPricer pricer(model, config, hardware, links, efficiency);
  PassSeconds sum = pricer.embedding(false);
  const int64_t dense = model.shape.layers - model.layers_with_experts;
  if (dense > 0) sum.add(pricer.layer(LayerKind::kDense, false), to_real(dense));
  if (model.layers_with_experts > 0) {
    sum.add(pricer.layer(LayerKind::kExperts, false), to_real(model.layers_with_experts));
  }
  sum.add(PassPricer(model, last, hardware, links, efficiency).head(false), 1);
  const double stream = pricer.tokens() * to_real(model.shape.embed) * config.activation_bytes;
  const double sends =
      config.pipeline > 1 ? to_real(config.pipeline - 1) * links.send_seconds(stream, config.tensor, efficiency) : 0;
  return sum.compute() + sum.tensor + sum.expert + sum.fixed + sends;
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
  const TrainingConfig decode = pass_config(config, 1);
  double parameters = 0;
  for (const StageLayers& stage : layers_of_stages(model, prefill)) {
    parameters = std::max(parameters, stage_parameters(model, prefill, stage).total() * config.parameter_bytes);
  }
  plan.parameters = whole_bytes(parameters);
  // Each stage has its layers of the cache of `pipeline` batches.
  const int64_t context = config.prompt + config.output;
  plan.cache = whole_bytes(to_real(config.batch) * cache_of(shape, config, context));
  // One layer's activations of a prompt, and the logits of each sequence's last token.
  const LayerKind kind = model.layers_with_experts > 0 ? LayerKind::kExperts : LayerKind::kDense;
  const double logits = 4 * to_real(config.batch * shape.vocab) / to_real(config.tensor);
  const double working = layer_activations(model, prefill, kind).complete + logits;
  plan.working = whole_bytes(working);
  const auto seconds_of = [&](const Efficiency& rates) {
    InferenceSeconds seconds;
    seconds.prefill = forward_seconds(model, prefill, decode, hardware, links, rates);
    const double step = forward_seconds(model, decode, decode, hardware, links, rates);
    const double bandwidth = hardware.device.memory_bandwidth * rates[Factor::kMemory];
    const auto reads = [&](int64_t tokens) {
      return to_real(config.batch) * cache_of(shape, config, tokens) / bandwidth;
    };
    seconds.decode = step + reads(config.prompt + config.output / 2);
    seconds.last_decode = step + reads(context);
    seconds.request = seconds.prefill + seconds.decode * to_real(config.output - 1);
    seconds.tokens_per_second = to_real(plan.replicas * config.batch * config.pipeline) / seconds.decode;
    seconds.request = seconds.prefill + seconds.decode * to_real(config.output - 1);
    seconds.tokens_per_second = to_real(plan.replicas * config.batch * config.pipeline) / seconds.decode;
    return seconds;
  };
  plan.roofline = seconds_of(ideal_efficiency());
  plan.expected = seconds_of(efficiency);
  const double room = to_real(plan.available) - parameters;
  const double each = working / to_real(config.batch) + cache_of(shape, config, context);
  plan.largest_batch = std::max<int64_t>(0, static_cast<int64_t>(room / each));
  // Windows make the cache's growth uneven: search instead of dividing.
  const double space = room - working;
  int64_t low = 0;
  int64_t high = 1;
  const auto is_small = [&](int64_t tokens) {
    return to_real(config.batch) * cache_of(shape, config, tokens) <= space;
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
