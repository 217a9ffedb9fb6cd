// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/training/step.h"

#include <algorithm>

#include "artifex_planner/training/real.h"

namespace artifex_devices::planner {

StepPricer::StepPricer(const TrainingModel& model, const TrainingHardware& hardware, TrainingLinks& links,
                       const Efficiency& efficiency)
    : model_(model),
      hardware_(hardware),
      links_(links),
      efficiency_(efficiency),
      slots_(model, hardware, links, efficiency) {}

double StepPricer::least_seconds(const TrainingConfig& config) { return slots_.slots(config).step.total(); }

TrainingSeconds StepPricer::seconds(const TrainingConfig& config) {
  const StageSlots& found = slots_.slots(config);
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
    const HiddenSeconds own = data(config, layers, found.slots[i]);
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
  const StageSlots& found = slots_.slots(config);
  const StageLayers& layers = found.stages[static_cast<size_t>(stage)];
  const StageSlot& slot = found.slots[static_cast<size_t>(stage)];
  StageWork work{slot.passes, slot.sends};
  const HiddenSeconds exchanged = data(config, layers, slot);
  work.data = exchanged.exposed + exchanged.hidden;
  work.update = update(config, layers);
  if (config.offload_optimizer || config.offload_activations) {
    const HiddenSeconds moved = offload(config, layers, slot, stage);
    work.offload = moved.exposed + moved.hidden;
  }
  return work;
}

HiddenSeconds StepPricer::data(const TrainingConfig& config, const StageLayers& layers, const StageSlot& slot) {
  const LocalParameters parameters = stage_parameters(model_, config, layers);
  const double messages = std::max(1.0, to_real(layers.total()));
  const double repeats = config.zero >= 2 ? to_real(config.microbatches()) : 1;
  double reduce = 0;
  double gather = 0;
  const auto seconds = [&](Collective op, double bytes, int64_t devices, int64_t stride) {
    return links_.seconds(op, bytes, devices, stride, efficiency_, config.sharp);
  };
  const auto add = [&](double gradient_bytes, double parameter_bytes, int64_t shards, int64_t replicas,
                       int64_t stride) {
    const double gradients = gradient_bytes / messages;
    const double values = parameter_bytes / messages;
    if (config.zero == 0) {
      reduce += messages * seconds(Collective::kAllReduce, gradients, shards * replicas, stride);
      return;
    }
    reduce += messages * repeats * seconds(Collective::kReduceScatter, gradients, shards, stride);
    reduce += messages * seconds(Collective::kAllReduce, gradients / to_real(shards), replicas, stride * shards);
    const double times = config.zero == 3 ? 2 * to_real(config.microbatches()) : 1;
    gather += messages * times * seconds(Collective::kAllGather, values, shards, stride);
  };
  const int64_t all = config.context * config.data;
  const LocalParameters::Bytes gradients = parameters.bytes(config.gradient_bytes);
  const LocalParameters::Bytes values = parameters.bytes(config.parameter_bytes);
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
      config.zero == 3 ? to_real(config.microbatches()) * slot.total() - reduced.hidden : slot.forward;
  const HiddenSeconds gathered = hide(gather, part, passes);
  return {reduced.exposed + gathered.exposed, reduced.hidden + gathered.hidden};
}

/// States that the update reads and writes: gradient, optimizer state twice, parameter. The devices of a host share its
/// memory.
double StepPricer::update(const TrainingConfig& config, const StageLayers& layers) const {
  const LocalParameters own = owned(config, layers);
  double bytes = 0;
  for (size_t i = 0; i < own.counts.size(); ++i) {
    const double state = optimizer_bytes(config.optimizer, static_cast<TensorKind>(i));
    bytes += own.counts[i] * (config.gradient_bytes[i] + 2 * state + config.parameter_bytes[i]);
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
    const double once = stage_activations(model_, config, layers, stage) / in_flight;
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
