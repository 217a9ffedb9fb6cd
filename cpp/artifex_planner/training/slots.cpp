// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/training/slots.h"

#include <algorithm>

#include "artifex_planner/training/real.h"

namespace artifex_devices::planner {
namespace {

/// The configuration with all that slots do not depend on set to one value.
TrainingConfig for_slots(TrainingConfig config) {
  config.zero = 0;
  config.zero_shards = 0;
  config.optimizer = TrainingOptimizer::kSgd;
  config.offload_optimizer = false;
  config.offload_activations = false;
  return config;
}

/// The same for the passes of a layer, the embedding and the output.
TrainingConfig for_passes(const TrainingConfig& config) {
  TrainingConfig result = for_slots(config);
  result.pipeline = 1;
  result.data = 1;
  result.batch = 1;
  result.chunks = 1;
  result.schedule = PipelineSchedule::kOneForwardOneBackward;
  result.recompute = Recompute::kNone;
  result.recompute_method = RecomputeMethod::kBlock;
  result.recompute_layers = -1;
  result.overlap = {};
  return result;
}

double overlap(const TrainingConfig& config, Traffic traffic) { return config.overlap[static_cast<size_t>(traffic)]; }

/// Adds a pass to the parts; computation of recomputed passes is one part. Returns its seconds.
double add_pass(TrainingSeconds& time, const TrainingConfig& config, const PassSeconds& pass, bool is_recomputed) {
  if (is_recomputed) {
    time[TimePart::kRecompute] += pass.compute();
  } else {
    time[TimePart::kProducts] += pass.products;
    time[TimePart::kAttention] += pass.attention;
    time[TimePart::kElementwise] += pass.elementwise;
  }
  time[TimePart::kFixed] += pass.fixed;
  double seconds = pass.compute() + pass.fixed;
  const auto add = [&](Traffic traffic, TimePart part, const HiddenSeconds& each) {
    time[part] += each.exposed;
    time.hidden[static_cast<size_t>(traffic)] += each.hidden;
    seconds += each.exposed;
  };
  const HiddenSeconds context = hide(pass.context, overlap(config, Traffic::kContext), pass.attention);
  add(Traffic::kContext, TimePart::kContext, context);
  const HiddenSeconds beside = hide(pass.tensor_beside, 1, pass.products / 2);
  add(Traffic::kTensor, TimePart::kTensor, beside);
  const HiddenSeconds tensor = hide(pass.tensor, overlap(config, Traffic::kTensor), pass.products - beside.hidden);
  add(Traffic::kTensor, TimePart::kTensor, tensor);
  const double window = pass.compute() - context.hidden - beside.hidden - tensor.hidden;
  add(Traffic::kExpert, TimePart::kExpert, hide(pass.expert, overlap(config, Traffic::kExpert), window));
  return seconds;
}

}  // namespace

HiddenSeconds hide(double seconds, double part, double window) noexcept {
  const double hidden = std::min(seconds * part, std::max(window, 0.0));
  return {seconds - hidden, hidden};
}

SlotPricer::SlotPricer(const TrainingModel& model, const TrainingHardware& hardware, TrainingLinks& links,
                       const Efficiency& efficiency)
    : model_(model), hardware_(hardware), links_(links), efficiency_(efficiency) {}

void SlotPricer::price_passes(const TrainingConfig& config) {
  passes_of_.reset();  // an error below leaves nothing to reuse
  PassPricer pricer(model_, config, hardware_, links_, efficiency_);
  for (const bool is_backward : {false, true}) {
    if (model_.layers_with_experts < model_.shape.layers) {
      passes_.layers[0][is_backward] = pricer.layer(LayerKind::kDense, is_backward);
    }
    if (model_.layers_with_experts > 0) {
      passes_.layers[1][is_backward] = pricer.layer(LayerKind::kExperts, is_backward);
    }
    passes_.embedding[is_backward] = pricer.embedding(is_backward);
    passes_.head[is_backward] = pricer.head(is_backward);
  }
  passes_of_ = for_passes(config);
}

const StageSlots& SlotPricer::slots(const TrainingConfig& config) {
  const TrainingConfig key = for_slots(config);
  if (slots_of_ == key) return found_;
  slots_of_.reset();
  if (passes_of_ != for_passes(config)) price_passes(config);
  double send = 0;
  if (config.pipeline > 1) {
    const double tokens = to_real(config.microbatch * config.sequence) / to_real(config.context);
    const double bytes = tokens * to_real(model_.shape.embed) * config.activation_bytes /
                         (config.sequence_parallel ? to_real(config.tensor) : 1);
    send =
        to_real(config.chunks) * links_.send_seconds(bytes, config.tensor * config.context * config.data, efficiency_);
  }
  found_.stages = layers_of_stages(model_, config);
  found_.like.clear();
  found_.slots.clear();
  size_t slowest = 0;
  double sum = 0;
  for (size_t i = 0; i < found_.stages.size(); ++i) {
    const auto first = std::ranges::find(found_.stages, found_.stages[i]);
    found_.like.push_back(static_cast<size_t>(first - found_.stages.begin()));
    if (found_.like[i] < i) {
      found_.slots.push_back(found_.slots[found_.like[i]]);
    } else {
      found_.slots.push_back(slot(config, found_.stages[i], send));
    }
    sum += found_.slots.back().total();
    if (found_.slots.back().total() > found_.slots[slowest].total()) slowest = i;
  }
  const double m = to_real(config.microbatches());
  const TrainingSeconds& pace = found_.slots[slowest].time;
  for (size_t i = 0; i < pace.parts.size(); ++i) found_.step.parts[i] = m * pace.parts[i];
  for (size_t i = 0; i < pace.hidden.size(); ++i) found_.step.hidden[i] = m * pace.hidden[i];
  found_.step[TimePart::kBubble] = (sum - found_.slots[slowest].total()) / to_real(config.chunks);
  found_.step[TimePart::kFixed] += efficiency_[Factor::kStepSeconds];
  slots_of_ = key;
  return found_;
}

StageSlot SlotPricer::slot(const TrainingConfig& config, const StageLayers& layers, double send) const {
  StageSlot result;
  auto& [forward, backward, repeated] = result.passes;
  forward = pass(layers, false);
  backward = pass(layers, true);
  result.forward = add_pass(result.time, config, forward, false);
  result.backward = add_pass(result.time, config, backward, false);
  const double again = recomputed_layers(config, layers);
  if (again > 0) {
    const double part = again / to_real(layers.total());
    repeated.add(passes_.layers[0][0], part * to_real(layers.dense));
    repeated.add(passes_.layers[1][0], part * to_real(layers.with_experts));
    result.backward += add_pass(result.time, config, repeated, true);
  } else if (config.recompute == Recompute::kSelective && !config.flash_attention) {
    for (const size_t kind : {size_t{0}, size_t{1}}) {
      const double count = to_real(kind == 0 ? layers.dense : layers.with_experts);
      repeated.attention += count * passes_.layers[kind][0].attention;
      repeated.scores += count * passes_.layers[kind][0].scores;
    }
    result.time[TimePart::kRecompute] += repeated.attention;
    result.backward += repeated.attention;
  }
  result.sends = 2 * send;
  const HiddenSeconds sends = hide(send, overlap(config, Traffic::kPipeline), result.forward);
  result.time[TimePart::kPipeline] += 2 * sends.exposed;
  result.time.hidden[static_cast<size_t>(Traffic::kPipeline)] += 2 * sends.hidden;
  result.forward += sends.exposed;
  result.backward += sends.exposed;
  return result;
}

PassSeconds SlotPricer::pass(const StageLayers& layers, bool is_backward) const {
  PassSeconds sum;
  sum.add(passes_.layers[0][is_backward], to_real(layers.dense));
  sum.add(passes_.layers[1][is_backward], to_real(layers.with_experts));
  if (layers.has_embedding) sum.add(passes_.embedding[is_backward], 1);
  if (layers.has_head) sum.add(passes_.head[is_backward], 1);
  return sum;
}

}  // namespace artifex_devices::planner
