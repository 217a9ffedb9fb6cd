// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/training/time.h"

#include <algorithm>
#include <numeric>

#include "artifex_planner/training/buffers.h"
#include "artifex_planner/training/model.h"
#include "artifex_planner/training/selective.h"

namespace artifex_devices::planner {

double TrainingSeconds::total() const noexcept { return std::accumulate(parts.begin(), parts.end(), 0.0); }

TrainingSeconds training_seconds(const TrainingModel& model, const TrainingConfig& config,
                                 const TrainingHardware& hardware, TrainingLinks& links, const Efficiency& efficiency) {
  return StepPricer(model, hardware, links, efficiency).seconds(config);
}

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

StepPricer::StepPricer(const TrainingModel& model, const TrainingHardware& hardware, TrainingLinks& links,
                       const Efficiency& efficiency)
    : model_(model), hardware_(hardware), links_(links), efficiency_(efficiency) {}

void StepPricer::price_passes(const TrainingConfig& config) {
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

const StageSlots& StepPricer::slots(const TrainingConfig& config) {
  const TrainingConfig key = for_slots(config);
  if (slots_of_ == key) return found_;
  slots_of_.reset();
  if (passes_of_ != for_passes(config)) price_passes(config);
  double send = 0;
  if (config.pipeline > 1) {
    const double tokens = to_real(config.microbatch * config.sequence) / to_real(config.context);
    const double bytes = tokens * to_real(model_.shape.embed) * config.activation_bytes /
                         (config.sequence_parallel ? to_real(config.tensor) : 1);
    const int64_t stride = config.tensor * config.context * config.data;
    send = links_.send_seconds(bytes, config.pipeline, stride, efficiency_, to_real(config.chunks));
  }
  found_.sends = links_.take_messages();
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

StageSlot StepPricer::slot(const TrainingConfig& config, const StageLayers& layers, double send) const {
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
  } else if (config.recompute == Recompute::kSelective) {
    for (const size_t kind : {size_t{0}, size_t{1}}) {
      const double count = to_real(kind == 0 ? layers.dense : layers.with_experts);
      const PassSeconds& once = passes_.layers[kind][0];
      if (!config.flash_attention) {
        repeated.attention += count * once.attention;
        repeated.scores += count * once.scores;
      }
      if (recomputes_products(config) && count > 0) {
        repeated.products += count * recomputed_products(model_, static_cast<LayerKind>(kind)) * once.products;
        repeated.elementwise += count * once.elementwise;
      }
    }
    result.time[TimePart::kRecompute] += repeated.compute();
    result.backward += repeated.compute();
  }
  result.sends = 2 * send;
  const HiddenSeconds sends = hide(send, overlap(config, Traffic::kPipeline), result.forward);
  result.time[TimePart::kPipeline] += 2 * sends.exposed;
  result.time.hidden[static_cast<size_t>(Traffic::kPipeline)] += 2 * sends.hidden;
  result.forward += sends.exposed;
  result.backward += sends.exposed;
  return result;
}

PassSeconds StepPricer::pass(const StageLayers& layers, bool is_backward) const {
  PassSeconds sum;
  sum.add(passes_.layers[0][is_backward], to_real(layers.dense));
  sum.add(passes_.layers[1][is_backward], to_real(layers.with_experts));
  if (layers.has_embedding) sum.add(passes_.embedding[is_backward], 1);
  if (layers.has_head) sum.add(passes_.head[is_backward], 1);
  return sum;
}

TrainingSeconds StepPricer::seconds(const TrainingConfig& config) {
  const StageSlots& found = slots(config);
  TrainingSeconds step = found.step;
  HiddenSeconds exchanged;
  HiddenSeconds moved;
  for (size_t i = 0; i < found.stages.size(); ++i) {
    const StageLayers& layers = found.stages[i];
    if (config.offload_optimizer || config.offload_activations) {
      const HiddenSeconds own = offload(config, layers, found.slots[i], static_cast<int64_t>(i));
      if (i == 0 || own.exposed > moved.exposed) moved = own;
    }
    if (found.like[i] < i) continue;
    const HiddenSeconds own = data(config, layers, found.slots[i]).seconds;
    if (i == 0 || own.exposed > exchanged.exposed) exchanged = own;
    step[TimePart::kUpdate] = std::max(step[TimePart::kUpdate], update(config, layers));
  }
  step[TimePart::kData] = exchanged.exposed;
  step.hidden[static_cast<size_t>(Traffic::kData)] = exchanged.hidden;
  step[TimePart::kOffload] = moved.exposed;
  step.hidden[static_cast<size_t>(Traffic::kOffload)] = moved.hidden;
  return step;
}

StageWork StepPricer::work(const TrainingConfig& config, int64_t stage) {
  const StageSlots& found = slots(config);
  const StageLayers& layers = found.stages[static_cast<size_t>(stage)];
  const StageSlot& slot = found.slots[static_cast<size_t>(stage)];
  StageWork work{slot.passes, slot.sends};
  const ExchangedSeconds exchanged = data(config, layers, slot);
  work.data = exchanged.seconds.exposed + exchanged.seconds.hidden;
  const double m = to_real(config.microbatches());
  for (const PassSeconds& each : slot.passes) add_messages(work.messages, each.messages, m);
  add_messages(work.messages, found.sends, 2 * m);
  add_messages(work.messages, exchanged.messages, 1);
  work.update = update(config, layers);
  if (config.offload_optimizer || config.offload_activations) {
    const HiddenSeconds moved = offload(config, layers, slot, stage);
    work.offload = moved.exposed + moved.hidden;
  }
  return work;
}

ExchangedSeconds StepPricer::data(const TrainingConfig& config, const StageLayers& layers, const StageSlot& slot) {
  const LocalParameters parameters = stage_parameters(model_, config, layers);
  const double messages = std::max(1.0, to_real(layers.total()));
  const bool is_once = config.zero < 2 || holds_gathered(config);  // a step, not for each microbatch
  const double repeats = is_once ? 1 : to_real(config.microbatches());
  double reduce = 0;
  double gather = 0;
  const auto seconds = [&](double times, CollectiveOp op, double bytes, int64_t devices, int64_t stride) {
    return links_.seconds(op, bytes, devices, stride, efficiency_, times, config.sharp);
  };
  const auto add = [&](double gradient_bytes, double parameter_bytes, int64_t shards, int64_t replicas,
                       int64_t stride) {
    const double gradients = gradient_bytes / messages;
    const double values = parameter_bytes / messages;
    if (config.zero == 0) {
      reduce += seconds(messages, CollectiveOp::kAllReduce, gradients, shards * replicas, stride);
      return;
    }
    reduce += seconds(messages * repeats, CollectiveOp::kReduceScatter, gradients, shards, stride);
    reduce += seconds(messages, CollectiveOp::kAllReduce, gradients / to_real(shards), replicas, stride * shards);
    const double times = config.zero == 3 && !is_once ? 2 * to_real(config.microbatches()) : 1;
    gather += seconds(messages * times, CollectiveOp::kAllGather, values, shards, stride);
  };
  const int64_t all = config.context * config.data;
  const LocalParameters::Bytes gradients = parameters.bytes(config.gradient_bytes);
  const LocalParameters::Bytes values =
      parameters.bytes(config.zero == 3 ? gathered_bytes(config) : config.parameter_bytes);
  add(gradients.dense, values.dense, config.shards(), all / config.shards(), config.tensor);
  if (gradients.experts > 0) {
    const int64_t shards = config.expert_shards();
    add(gradients.experts, values.experts, shards, config.expert_replicas() / shards,
        config.expert * config.expert_tensor);
  }
  // Gradients hide behind the backward passes that they come from, parameters behind the first forward pass, or with
  // ZeRO-3 behind all passes.
  const double part = config.overlap[static_cast<size_t>(Traffic::kData)];
  const HiddenSeconds reduced = hide(reduce, part, repeats * slot.backward);
  const double passes =
      config.zero == 3 && !is_once ? to_real(config.microbatches()) * slot.total() - reduced.hidden : slot.forward;
  const HiddenSeconds gathered = hide(gather, part, passes);
  return {{reduced.exposed + gathered.exposed, reduced.hidden + gathered.hidden}, links_.take_messages()};
}

/// States that the update reads and writes: gradient, optimizer state twice, parameter. The devices of a host share its
/// memory.
double StepPricer::update(const TrainingConfig& config, const StageLayers& layers) const {
  const LocalParameters own = owned(config, layers);
  const TensorNumbers& states = optimizer_bytes(config.optimizer);
  double bytes = 0;
  for (size_t i = 0; i < own.counts.size(); ++i) {
    bytes += own.counts[i] * (config.gradient_bytes[i] + 2 * states[i] + config.parameter_bytes[i]);
  }
  if (!config.offload_optimizer) return bytes / (hardware_.device.memory_bandwidth * efficiency_[Factor::kMemory]);
  const double rate = efficiency_[Factor::kHostMemory];
  return rate > 0 ? bytes * to_real(hardware_.devices_per_host) / rate : 0;
}

HiddenSeconds StepPricer::offload(const TrainingConfig& config, const StageLayers& layers, const StageSlot& slot,
                                  int64_t stage) const {
  HiddenSeconds sum;
  const double part = config.overlap[static_cast<size_t>(Traffic::kOffload)];
  const double rate = hardware_.host_bandwidth * efficiency_[Factor::kHost];
  if (config.offload_optimizer) {
    // Gradients go to the host and parameters come back. Where gradients go after each microbatch, the sum of those
    // before comes back too, and is added on the device (microsoft/DeepSpeed, stage_1_and_2.py).
    const LocalParameters own = owned(config, layers);
    const LocalParameters::Bytes out = own.bytes(config.gradient_bytes);
    const LocalParameters::Bytes in = own.bytes(config.parameter_bytes);
    const double times = sends_gradients_at_once(config) ? to_real(config.microbatches()) : 1;
    const double bytes = (2 * times - 1) * (out.dense + out.experts) + in.dense + in.experts;
    const HiddenSeconds each = hide(bytes / rate, part, times * slot.backward);
    sum = {sum.exposed + each.exposed, sum.hidden + each.hidden};
  }
  if (config.offload_activations) {
    const double in_flight = chunks_in_flight(config, stage) / to_real(config.chunks);
    const double output = layers.has_head ? output_activations(model_, config) : 0;
    const double once = (stage_activations(model_, config, layers, stage) - output) / in_flight;
    const HiddenSeconds each = hide(2 * once / rate, part, slot.total());
    const double m = to_real(config.microbatches());
    sum = {sum.exposed + m * each.exposed, sum.hidden + m * each.hidden};
  }
  return sum;
}

LocalParameters StepPricer::owned(const TrainingConfig& config, const StageLayers& layers) const {
  const LocalParameters all = stage_parameters(model_, config, layers);
  return config.zero == 0 ? all : owned_parameters(all, config);
}

}  // namespace artifex_devices::planner
