// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/planner/training_seconds.h"

#include <algorithm>
#include <numeric>

#include "artifex_devices/planner/training_pass.h"
#include "artifex_devices/planner/training_real.h"

namespace artifex_devices {
namespace {

constexpr std::array<std::string_view, kTimePartCount> kTimeNames = {
    "products", "attention", "elementwise", "recompute", "tensor", "context", "expert",
    "pipeline", "bubble",    "data",        "offload",   "update", "fixed"};

/// Communication and how much of it computation hides.
struct Hidden {
  double exposed = 0;
  double hidden = 0;
};
Hidden hide(double seconds, double part, double window) {
  const double hidden = std::min(seconds * part, std::max(window, 0.0));
  return {seconds - hidden, hidden};
}

/// One microbatch of one stage, forward and backward.
struct Slot {
  TrainingSeconds time;  // parts of one microbatch
  double forward = 0;
  double backward = 0;
  double total() const { return forward + backward; }
};

class StagePricer {
 public:
  StagePricer(const TrainingModel& model, const TrainingConfig& config, const TrainingHardware& hardware,
              TrainingLinks& links, const Efficiency& efficiency)
      : model_(model),
        config_(config),
        hardware_(hardware),
        links_(links),
        efficiency_(efficiency),
        pricer_(model, config, hardware, links, efficiency) {
    for (const bool is_backward : {false, true}) {
      if (model.layers_with_experts < model.shape.layers) {
        layers_[0][is_backward] = pricer_.layer(LayerKind::kDense, is_backward);
      }
      if (model.layers_with_experts > 0) layers_[1][is_backward] = pricer_.layer(LayerKind::kExperts, is_backward);
    }
    if (config.pipeline > 1) {
      const double bytes = pricer_.tokens() * to_real(model.shape.embed) * config.activation_bytes /
                           (config.sequence_parallel ? to_real(config.tensor) : 1);
      send_ =
          to_real(config.chunks) * links.send_seconds(bytes, config.tensor * config.context * config.data, efficiency);
    }
  }

  Slot slot(const StageLayers& layers) {
    Slot result;
    result.forward = add_pass(result.time, pass(layers, false), TimePart::kProducts);
    result.backward = add_pass(result.time, pass(layers, true), TimePart::kProducts);
    const double again = recomputed_layers(layers);
    if (again > 0) {
      PassSeconds repeated;
      const double part = again / to_real(layers.total());
      repeated.add(layers_[0][0], part * to_real(layers.dense)).add(layers_[1][0], part * to_real(layers.with_experts));
      result.backward += add_pass(result.time, repeated, TimePart::kRecompute);
    } else if (config_.recompute == Recompute::kSelective && !config_.flash_attention) {
      const double scores =
          to_real(layers.dense) * layers_[0][0].attention + to_real(layers.with_experts) * layers_[1][0].attention;
      result.time[TimePart::kRecompute] += scores;
      result.backward += scores;
    }
    const Hidden sends = hide(send_, overlap(Traffic::kPipeline), result.forward);
    result.time[TimePart::kPipeline] += 2 * sends.exposed;
    result.time.hidden[static_cast<size_t>(Traffic::kPipeline)] += 2 * sends.hidden;
    result.forward += sends.exposed;
    result.backward += sends.exposed;
    return result;
  }

  /// Gradients and parameters between replicas, for the whole step.
  Hidden data_seconds(const StageLayers& layers, const Slot& slot) {
    const LocalParameters parameters = stage_parameters(model_, config_, layers);
    const double messages = std::max(1.0, to_real(layers.total()));
    const double repeats = config_.zero >= 2 ? to_real(config_.microbatches()) : 1;
    double reduce = 0;
    double gather = 0;
    const auto add = [&](double count, int64_t shards, int64_t replicas, int64_t stride) {
      if (count <= 0) return;
      const double gradients = config_.gradient_bytes * count / messages;
      const double values = config_.parameter_bytes * count / messages;
      if (config_.zero == 0) {
        reduce += messages * seconds(Collective::kAllReduce, gradients, shards * replicas, stride);
        return;
      }
      reduce += messages * repeats * seconds(Collective::kReduceScatter, gradients, shards, stride);
      reduce += messages * seconds(Collective::kAllReduce, gradients / to_real(shards), replicas, stride * shards);
      const double times = config_.zero == 3 ? 2 * to_real(config_.microbatches()) : 1;
      gather += messages * times * seconds(Collective::kAllGather, values, shards, stride);
    };
    const int64_t all = config_.context * config_.data;
    add(parameters.dense, config_.shards(), all / config_.shards(), config_.tensor);
    if (parameters.experts > 0) {
      const int64_t ranks = config_.expert_shards();
      int64_t shards = config_.zero_shards > 0 ? std::min(config_.zero_shards, ranks) : ranks;
      while (ranks % shards != 0) --shards;
      add(parameters.experts, shards, ranks / shards, config_.expert * config_.expert_tensor);
    }
    // Gradients hide behind the backward passes that they come from, parameters behind the first forward pass, or with
    // ZeRO-3 behind all passes.
    const double part = overlap(Traffic::kData);
    const Hidden reduced = hide(reduce, part, repeats * slot.backward);
    const double passes =
        config_.zero == 3 ? to_real(config_.microbatches()) * slot.total() - reduced.hidden : slot.forward;
    const Hidden gathered = hide(gather, part, passes);
    return {reduced.exposed + gathered.exposed, reduced.hidden + gathered.hidden};
  }

  /// States that the update reads and writes: gradient, optimizer state twice, parameter.
  double update_seconds(const StageLayers& layers) const {
    if (config_.offload_optimizer) return 0;  // the host updates while it transfers
    const double bytes = config_.gradient_bytes + 2 * optimizer_bytes(config_.optimizer) + config_.parameter_bytes;
    return owned(layers) * bytes / (hardware_.device.memory_bandwidth * efficiency_[Factor::kMemory]);
  }

  Hidden offload_seconds(const StageLayers& layers, const Slot& slot, int64_t stage) const {
    Hidden sum;
    if (!config_.offload_optimizer && !config_.offload_activations) return sum;
    const double rate = hardware_.host_bandwidth * efficiency_[Factor::kHost];
    if (config_.offload_optimizer) {
      // Gradients go to the host and parameters come back.
      const double bytes = owned(layers) * (config_.gradient_bytes + config_.parameter_bytes);
      const Hidden each = hide(bytes / rate, overlap(Traffic::kOffload), slot.backward);
      sum = {sum.exposed + each.exposed, sum.hidden + each.hidden};
    }
    if (config_.offload_activations) {
      const double in_flight = chunks_in_flight(config_, stage) / to_real(config_.chunks);
      const double once = stage_activations(model_, config_, layers, stage) / in_flight;
      const Hidden each = hide(2 * once / rate, overlap(Traffic::kOffload), slot.total());
      const double m = to_real(config_.microbatches());
      sum = {sum.exposed + m * each.exposed, sum.hidden + m * each.hidden};
    }
    return sum;
  }

 private:
  double overlap(Traffic traffic) const { return config_.overlap[static_cast<size_t>(traffic)]; }
  double seconds(Collective op, double bytes, int64_t devices, int64_t stride) {
    return links_.seconds(op, bytes, devices, stride, efficiency_);
  }

  /// Parameters whose state this device updates.
  double owned(const StageLayers& layers) const {
    const LocalParameters all = stage_parameters(model_, config_, layers);
    if (config_.zero == 0) return all.total();
    const int64_t shards =
        config_.zero_shards > 0 ? std::min(config_.zero_shards, config_.expert_shards()) : config_.expert_shards();
    return all.dense / to_real(config_.shards()) + all.experts / to_real(std::max<int64_t>(shards, 1));
  }

  double recomputed_layers(const StageLayers& layers) const {
    if (config_.recompute != Recompute::kFull) return 0;
    if (config_.recompute_layers < 0) return to_real(layers.total());
    return to_real(std::min(config_.recompute_layers, layers.total()));
  }

  PassSeconds pass(const StageLayers& layers, bool is_backward) {
    PassSeconds sum;
    sum.add(layers_[0][is_backward], to_real(layers.dense)).add(layers_[1][is_backward], to_real(layers.with_experts));
    if (layers.has_embedding) sum.add(pricer_.embedding(is_backward), 1);
    if (layers.has_head) sum.add(pricer_.head(is_backward), 1);
    return sum;
  }

  /// Adds a pass to the parts; computation of recomputed passes is one part. Returns its seconds.
  double add_pass(TrainingSeconds& time, const PassSeconds& pass, TimePart into) const {
    if (into == TimePart::kRecompute) {
      time[into] += pass.compute();
    } else {
      time[TimePart::kProducts] += pass.products;
      time[TimePart::kAttention] += pass.attention;
      time[TimePart::kElementwise] += pass.elementwise;
    }
    time[TimePart::kFixed] += pass.fixed;
    double seconds = pass.compute() + pass.fixed;
    const auto add = [&](Traffic traffic, TimePart part, const Hidden& each) {
      time[part] += each.exposed;
      time.hidden[static_cast<size_t>(traffic)] += each.hidden;
      seconds += each.exposed;
    };
    const Hidden context = hide(pass.context, overlap(Traffic::kContext), pass.attention);
    add(Traffic::kContext, TimePart::kContext, context);
    double window = pass.products;
    const Hidden beside = hide(pass.tensor_beside, 1, window / 2);
    add(Traffic::kTensor, TimePart::kTensor, beside);
    const Hidden tensor = hide(pass.tensor, overlap(Traffic::kTensor), window - beside.hidden);
    add(Traffic::kTensor, TimePart::kTensor, tensor);
    window = pass.compute() - context.hidden - beside.hidden - tensor.hidden;
    add(Traffic::kExpert, TimePart::kExpert, hide(pass.expert, overlap(Traffic::kExpert), window));
    return seconds;
  }

  const TrainingModel& model_;
  const TrainingConfig& config_;
  const TrainingHardware& hardware_;
  TrainingLinks& links_;
  const Efficiency& efficiency_;
  PassPricer pricer_;
  std::array<std::array<PassSeconds, 2>, 2> layers_{};  // by kind, then forward and backward
  double send_ = 0;
};

/// For each stage the first one with the same layers.
std::vector<size_t> first_equals(const std::vector<StageLayers>& stages) {
  std::vector<size_t> result;
  for (const StageLayers& each : stages) {
    result.push_back(static_cast<size_t>(std::ranges::find(stages, each) - stages.begin()));
  }
  return result;
}

}  // namespace

std::string_view to_string(TimePart part) noexcept { return kTimeNames[static_cast<size_t>(part)]; }

double TrainingSeconds::total() const noexcept { return std::accumulate(parts.begin(), parts.end(), 0.0); }

TrainingHardware training_hardware(const Cluster& cluster) {
  TrainingHardware hardware{step_hardware(cluster, "plan_training"), 0};
  if (const auto& rate = cluster.chip().host_bandwidth) {
    hardware.host_bandwidth = rate->value / cluster.chip().devices_per_chip;
  }
  return hardware;
}

TrainingSeconds training_seconds(const TrainingModel& model, const TrainingConfig& config,
                                 const TrainingHardware& hardware, TrainingLinks& links, const Efficiency& efficiency) {
  StagePricer pricer(model, config, hardware, links, efficiency);
  const std::vector<StageLayers> stages = layers_of_stages(model, config);
  const std::vector<size_t> like = first_equals(stages);
  std::vector<Slot> slots;
  size_t slowest = 0;
  double sum = 0;
  for (size_t i = 0; i < stages.size(); ++i) {
    slots.push_back(like[i] < i ? slots[like[i]] : pricer.slot(stages[i]));
    sum += slots.back().total();
    if (slots.back().total() > slots[slowest].total()) slowest = i;
  }
  const double m = to_real(config.microbatches());
  TrainingSeconds step;
  for (int i = 0; i < kTimePartCount; ++i) {
    const auto part = static_cast<TimePart>(i);
    step[part] = m * slots[slowest].time[part];
  }
  for (size_t i = 0; i < step.hidden.size(); ++i) step.hidden[i] = m * slots[slowest].time.hidden[i];
  step[TimePart::kBubble] = (sum - slots[slowest].total()) / to_real(config.chunks);
  Hidden data;
  Hidden offload;
  for (size_t i = 0; i < stages.size(); ++i) {
    step.forward.push_back(slots[i].forward);
    step.backward.push_back(slots[i].backward);
    const bool is_repeated = like[i] < i;
    if (is_repeated && !config.offload_activations) continue;
    const Hidden own = pricer.data_seconds(stages[i], slots[i]);
    if (i == 0 || own.exposed > data.exposed) data = own;
    const Hidden moved = pricer.offload_seconds(stages[i], slots[i], static_cast<int64_t>(i));
    if (i == 0 || moved.exposed > offload.exposed) offload = moved;
    step[TimePart::kUpdate] = std::max(step[TimePart::kUpdate], pricer.update_seconds(stages[i]));
  }
  step[TimePart::kData] = data.exposed;
  step.hidden[static_cast<size_t>(Traffic::kData)] = data.hidden;
  step[TimePart::kOffload] = offload.exposed;
  step.hidden[static_cast<size_t>(Traffic::kOffload)] = offload.hidden;
  step[TimePart::kFixed] += efficiency[Factor::kStepSeconds];
  return step;
}

double recomputed_part(const TrainingModel& model, const TrainingConfig& config) noexcept {
  if (config.recompute == Recompute::kNone || (config.recompute == Recompute::kSelective && config.flash_attention)) {
    return 0;
  }
  if (config.recompute == Recompute::kFull) {
    if (config.recompute_layers < 0) return 1.0 / 3;
    const double each = to_real(model.shape.layers) / to_real(config.pipeline);
    return std::min(1.0, to_real(config.recompute_layers) / each) / 3;
  }
  const double s = to_real(config.sequence);
  const double attention =
      2 * s * s * to_real(model.shape.layers * model.shape.heads) * (to_real(model.shape.head_dim) + model.value_dim);
  return attention / model_flops(model, 1, s);
}

}  // namespace artifex_devices
