// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/training/time.h"

#include <algorithm>
#include <numeric>

#include "artifex_devices/base/error.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_planner/training/model.h"

namespace artifex_devices::planner {

namespace {

constexpr std::array<std::string_view, kTimePartCount> kTimeNames = {
    "products", "attention", "elementwise", "recompute", "tensor", "context", "expert",
    "pipeline", "bubble",    "data",        "offload",   "update", "fixed"};

}  // namespace

std::string_view to_string(TimePart part) noexcept { return kTimeNames[static_cast<size_t>(part)]; }

double TrainingSeconds::total() const noexcept { return std::accumulate(parts.begin(), parts.end(), 0.0); }

TrainingSeconds training_seconds(const TrainingModel& model, const TrainingConfig& config,
                                 const TrainingHardware& hardware, TrainingLinks& links, const Efficiency& efficiency) {
  StepPricer pricer(model, hardware, links, efficiency);
  TrainingSeconds step = pricer.seconds(config);
  for (const StageSlot& slot : pricer.slots(config).slots) {
    step.forward.push_back(slot.forward);
    step.backward.push_back(slot.backward);
  }
  return step;
}

double recomputed_part(const TrainingModel& model, const TrainingConfig& config) noexcept {
  if (config.recompute == Recompute::kNone || (config.recompute == Recompute::kSelective && config.flash_attention)) {
    return 0;
  }
  if (config.recompute == Recompute::kFull) {
    if (config.recompute_layers < 0 || config.recompute_method == RecomputeMethod::kUniform) return 1.0 / 3;
    const double each = to_real(model.shape.layers) / to_real(config.pipeline);
    return std::min(1.0, to_real(config.recompute_layers) / each) / 3;
  }
  const double s = to_real(config.sequence);
  const double attention =
      2 * s * s * to_real(model.shape.layers * model.shape.heads) * (to_real(model.shape.head_dim) + model.value_dim);
  return attention / model_flops(model, 1, s);
}

namespace {

double peak_of(const TrainingHardware& hardware, MatmulFormat format) {
  const std::optional<double>& peak = hardware.device.peak_flops[static_cast<size_t>(format)];
  if (!peak) {
    throw_error<Unavailable>(
        "plan_training: the cluster's chip has no published FLOP/s in {}; expected a format that it has; choose another "
        "dtype, or give the cluster's chip this number",
        to_string(format));
  }
  return *peak;
}

bool is_eight_bits(MatmulFormat format) {
  return format == MatmulFormat::kFloat8 || format == MatmulFormat::kInt8 || format == MatmulFormat::kFloat4 ||
         format == MatmulFormat::kInt4;
}

double itemsize_of(MatmulFormat format) {
  if (is_eight_bits(format)) return 1;
  return format == MatmulFormat::kFloat32 || format == MatmulFormat::kTensorFloat32 ? 4 : 2;
}

}  // namespace

PassSeconds& PassSeconds::add(const PassSeconds& other, double times) noexcept {
  products += times * other.products;
  attention += times * other.attention;
  scores += times * other.scores;
  elementwise += times * other.elementwise;
  tensor += times * other.tensor;
  tensor_beside += times * other.tensor_beside;
  context += times * other.context;
  expert += times * other.expert;
  fixed += times * other.fixed;
  return *this;
}

PassPricer::PassPricer(const TrainingModel& model, const TrainingConfig& config, const TrainingHardware& hardware,
                       TrainingLinks& links, const Efficiency& efficiency)
    : model_(model), config_(config), links_(links), efficiency_(efficiency) {
  const Factor fraction = is_eight_bits(config.format) ? Factor::kMatmulFloat8 : Factor::kMatmul;
  rates_ = {peak_of(hardware, config.format), hardware.device.memory_bandwidth, efficiency[fraction],
            itemsize_of(config.format)};
  // Kernels of attention multiply in 16 bits where products have 8.
  attention_peak_ = is_eight_bits(config.format) ? peak_of(hardware, MatmulFormat::kBFloat16) : rates_.peak;
  tokens_ = to_real(config.microbatch * config.sequence) / to_real(config.context);
}

double PassPricer::products(const std::vector<LayerProduct>& all, double tokens, int64_t tensor,
                            bool is_backward) const {
  double sum = 0;
  for (const LayerProduct& each : all) {
    const double ways = to_real(each.ways(tensor));
    const double inner = each.split == LayerProduct::Split::kRows ? each.inner / ways : each.inner;
    const double columns = each.split == LayerProduct::Split::kColumns ? each.columns / ways : each.columns;
    if (!is_backward) {
      sum += product_seconds(tokens, columns, inner, rates_, efficiency_);
    } else {  // gradients of the input and of the matrix
      sum += product_seconds(tokens, inner, columns, rates_, efficiency_);
      sum += product_seconds(inner, columns, tokens, rates_, efficiency_);
    }
  }
  return sum;
}

void PassPricer::add_attention(PassSeconds& pass, bool is_backward) const {
  const TransformerShape& shape = model_.shape;
  const bool skips = config_.causal && config_.flash_attention;
  const double seen = attended_tokens(model_, to_real(config_.sequence), skips);
  const double heads = to_real(shape.heads) / to_real(config_.tensor);
  // Scores and their product with the values; the backward pass has five such products, and without a fused kernel
  // four (arXiv:2307.08691, section 3.1.2).
  const double flops = 2 * tokens_ * seen * heads * (to_real(shape.head_dim) + model_.value_dim);
  const double factor = !is_backward ? 1 : config_.flash_attention ? 2.5 : 2;
  const double fraction = efficiency_[is_backward ? Factor::kAttentionBackward : Factor::kAttentionForward];
  pass.attention += factor * flops / (attention_peak_ * fraction);
  if (!config_.flash_attention) {
    // Scores are written, read for the softmax, and read again: 4 passes, 8 backward.
    const double bytes = (is_backward ? 8 : 4) * config_.activation_bytes * tokens_ * to_real(config_.sequence) * heads;
    pass.scores += bytes / (rates_.memory_bandwidth * efficiency_[Factor::kMemory]);
    pass.attention += pass.scores;
  }
}

double PassPricer::elementwise_seconds(LayerKind kind, bool is_backward) const {
  const TransformerShape& shape = model_.shape;
  const TrainingLayer& layer = model_.layer(kind);
  const double act = config_.activation_bytes;
  // Between the sharded regions: each norm reads and writes the stream, with the addition before it two of each.
  const double between = to_real(shape.embed) / (config_.sequence_parallel ? to_real(config_.tensor) : 1);
  double bytes = 4 * act * to_real(shape.norms_per_layer) * between;
  if (config_.dropout) bytes += 2 * (2 * act + 1) * between;
  // Rotary positions of queries and keys.
  const double rotated = to_real((shape.heads + shape.kv_heads) * shape.head_dim) / to_real(config_.tensor);
  bytes += 2 * act * rotated;
  // The activation function reads one or two values and writes one.
  const double reads = shape.gated_mlp ? 3 : 2;
  bytes += act * reads * layer.mlp_width / to_real(config_.tensor);
  double all = bytes * tokens_;
  if (kind == LayerKind::kExperts) {
    const double routed = expert_tokens(model_, config_);
    all += routed * act * (reads * to_real(shape.mlp) / to_real(config_.expert_tensor) + 4 * to_real(shape.embed));
  }
  return (is_backward ? 2 : 1) * all / (rates_.memory_bandwidth * efficiency_[Factor::kMemory]);
}

double PassPricer::tensor_seconds(Collective op, double bytes) {
  return links_.seconds(op, bytes, config_.tensor, 1, efficiency_);
}

void PassPricer::add_region(PassSeconds& pass, double bytes, bool is_backward) {
  if (config_.tensor == 1) return;
  if (!config_.sequence_parallel) {
    pass.tensor += tensor_seconds(Collective::kAllReduce, bytes);
    return;
  }
  const double gather = tensor_seconds(Collective::kAllGather, bytes);
  pass.tensor += gather + tensor_seconds(Collective::kReduceScatter, bytes);
  // The backward pass gathers the region's input again, beside the product that does not need it (arXiv:2205.05198,
  // section 4.2.2).
  if (is_backward) pass.tensor_beside += gather;
}

double PassPricer::context_seconds(bool is_backward) {
  if (config_.context == 1) return 0;
  const TransformerShape& shape = model_.shape;
  const double act = config_.activation_bytes;
  const double ways = to_real(std::min(config_.tensor, shape.kv_heads));
  const double pair = shape.kv_lora_rank > 0
                          ? to_real(shape.kv_lora_rank + shape.rope_head_dim)
                          : to_real(shape.kv_heads) * (to_real(shape.head_dim) + model_.value_dim) / ways;
  const double keys = act * tokens_ * pair;  // and values, of this device
  const double c = to_real(config_.context);
  switch (config_.context_method) {
    case ContextMethod::kRing:
      // Keys and values make c - 1 steps; backward their gradients move with them.
      return (c - 1) * links_.send_seconds((is_backward ? 2 : 1) * keys, config_.tensor, efficiency_);
    case ContextMethod::kAllGather: {
      const double gather =
          links_.seconds(Collective::kAllGather, c * keys, config_.context, config_.tensor, efficiency_);
      if (!is_backward) return gather;
      return gather +
             links_.seconds(Collective::kReduceScatter, c * keys, config_.context, config_.tensor, efficiency_);
    }
    case ContextMethod::kAllToAll: {
      const double queries = act * tokens_ * to_real(shape.heads * shape.head_dim) / to_real(config_.tensor);
      const auto moved = [&](double bytes) {
        return links_.seconds(Collective::kAllToAll, c * bytes, config_.context, config_.tensor, efficiency_);
      };
      return 2 * moved(queries) + moved(keys);
    }
  }
  return 0;
}

void PassPricer::add_experts(PassSeconds& pass, bool is_backward) {
  const TransformerShape& shape = model_.shape;
  const TrainingLayer& layer = model_.layer(LayerKind::kExperts);
  const double routed = expert_tokens(model_, config_);
  // Experts of this device that have a token: all of them in training, fewer where few tokens are decoded.
  const double own = std::min(to_real(shape.experts) / to_real(config_.expert), std::max(routed, 1.0));
  pass.products += own * products(layer.expert, routed / own, config_.expert_tensor, is_backward);
  const double bytes = routed * to_real(shape.embed) * config_.activation_bytes;
  if (config_.expert > 1) {
    const double share = config_.expert_tensor > 1 && config_.sequence_parallel ? to_real(config_.expert_tensor) : 1;
    // Padded slots are sent apart: those of the experts of one node hold different tokens.
    TokenRoutes routes{to_real(shape.experts_per_token), std::max<int64_t>(shape.expert_groups, 1),
                       std::max<int64_t>(shape.groups_per_token, 1)};
    if (config_.expert_padding) routes.copies = 1;
    pass.expert += 2 * links_.expert_seconds(bytes / share, routes, config_.expert, config_.expert_tensor, efficiency_);
  }
  if (config_.expert_tensor > 1) add_region(pass, bytes, is_backward);
}

PassSeconds PassPricer::layer(LayerKind kind, bool is_backward) {
  const TrainingLayer& sizes = model_.layer(kind);
  PassSeconds pass;
  pass.products = products(sizes.attention, tokens_, config_.tensor, is_backward) +
                  products(sizes.mlp, tokens_, config_.tensor, is_backward);
  add_attention(pass, is_backward);
  pass.elementwise = elementwise_seconds(kind, is_backward);
  pass.context = context_seconds(is_backward);
  const double stream = tokens_ * to_real(model_.shape.embed) * config_.activation_bytes;
  add_region(pass, stream, is_backward);
  if (sizes.mlp_width > 0 && !model_.shape.parallel_layers) add_region(pass, stream, is_backward);
  if (kind == LayerKind::kExperts) add_experts(pass, is_backward);
  pass.fixed = efficiency_[Factor::kLayerSeconds];
  return pass;
}

PassSeconds PassPricer::embedding(bool is_backward) {
  PassSeconds pass;
  const double stream = tokens_ * to_real(model_.shape.embed) * config_.activation_bytes;
  pass.elementwise = (is_backward ? 2 : 1) * 2 * stream / (rates_.memory_bandwidth * efficiency_[Factor::kMemory]);
  if (!is_backward && config_.tensor > 1) {
    pass.tensor =
        tensor_seconds(config_.sequence_parallel ? Collective::kReduceScatter : Collective::kAllReduce, stream);
  } else if (config_.tensor > 1 && config_.sequence_parallel) {
    pass.tensor = tensor_seconds(Collective::kAllGather, stream);
  }
  return pass;
}

PassSeconds PassPricer::head(bool is_backward) {
  PassSeconds pass;
  const double columns = to_real(model_.shape.vocab) / to_real(config_.tensor);
  const LayerProduct product{to_real(model_.shape.embed), to_real(model_.shape.vocab), LayerProduct::Split::kColumns,
                             0};
  pass.products = products({product}, tokens_, config_.tensor, is_backward);
  // Logits are written and read in float32 by the loss.
  pass.elementwise = tokens_ * columns * 8 / (rates_.memory_bandwidth * efficiency_[Factor::kMemory]);
  const double stream = tokens_ * to_real(model_.shape.embed) * config_.activation_bytes;
  if (config_.tensor > 1 && config_.sequence_parallel) {
    pass.tensor = tensor_seconds(is_backward ? Collective::kReduceScatter : Collective::kAllGather, stream);
  } else if (config_.tensor > 1 && is_backward) {
    pass.tensor = tensor_seconds(Collective::kAllReduce, stream);
  }
  return pass;
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
  const StageSlots& found = slots(config);
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
