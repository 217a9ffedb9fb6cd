// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/training/memory.h"

#include <algorithm>
#include <numeric>

#include "artifex_planner/training/model.h"

namespace artifex_devices::planner {

namespace {

constexpr double kLogitBytes = 4;  // float32

double tokens_of(const TrainingConfig& config) {
  return to_real(config.microbatch * config.sequence) / to_real(config.context);
}

/// Ways that activations between sharded regions are sharded.
double between_ways(const TrainingConfig& config) { return config.sequence_parallel ? to_real(config.tensor) : 1; }

double local_elements(const std::vector<LayerProduct>& products, int64_t tensor) {
  double sum = 0;
  for (const LayerProduct& each : products) sum += each.inner * each.columns / to_real(each.ways(tensor));
  return sum;
}

/// Results of products that feed another product: the inputs of the matrices in rows.
double local_columns(const std::vector<LayerProduct>& products, int64_t tensor) {
  double sum = 0;
  for (const LayerProduct& each : products) {
    if (each.split != LayerProduct::Split::kRows) sum += each.columns / to_real(each.ways(tensor));
  }
  return sum;
}

/// Bytes of one microbatch that the output keeps: inputs of the last norm and of its product, and the logits.
double head_activations(const TrainingModel& model, const TrainingConfig& config) {
  const double h = to_real(model.shape.embed) * tokens_of(config) / between_ways(config);
  const double logits = kLogitBytes * tokens_of(config) * to_real(model.shape.vocab) / to_real(config.tensor);
  return 2 * config.activation_bytes * h + logits;
}

/// Values that an MLP keeps for each token: results of the first product, and the activation's.
double mlp_values(const TransformerShape& shape, double width) { return width * (shape.gated_mlp ? 3 : 2); }

}  // namespace

std::vector<StageLayers> layers_of_stages(const TrainingModel& model, const TrainingConfig& config) {
  const std::vector<int64_t> counts = stage_layers(model.shape.layers, config.pipeline * config.chunks);
  std::vector<StageLayers> stages(static_cast<size_t>(config.pipeline));
  int64_t layer = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    StageLayers& stage = stages[i % stages.size()];
    for (int64_t end = layer + counts[i]; layer < end; ++layer) {
      ++(layer_kind(model.shape, layer) == LayerKind::kExperts ? stage.with_experts : stage.dense);
    }
  }
  stages.front().has_embedding = true;
  stages.back().has_head = true;
  return stages;
}

LocalParameters layer_local_parameters(const TrainingModel& model, const TrainingConfig& config,
                                       LayerKind kind) noexcept {
  const TrainingLayer& layer = model.layer(kind);
  LocalParameters result;
  result[TensorKind::kNorm] = layer.other_parameters;
  result[TensorKind::kAttention] = local_elements(layer.attention, config.tensor);
  result[TensorKind::kMlp] = local_elements(layer.mlp, config.tensor) - layer.router_parameters;
  result[TensorKind::kRouter] = layer.router_parameters;
  result[TensorKind::kExpert] = layer.expert_parameters / to_real(config.expert * config.expert_tensor);
  return result;
}

double LocalParameters::total() const noexcept { return std::accumulate(counts.begin(), counts.end(), 0.0); }

void LocalParameters::add(const LocalParameters& other, double times) noexcept {
  for (size_t i = 0; i < counts.size(); ++i) counts[i] += times * other.counts[i];
}

LocalParameters::Bytes LocalParameters::bytes(const TensorNumbers& each) const noexcept {
  Bytes sum;
  for (size_t i = 0; i < counts.size(); ++i) {
    (static_cast<TensorKind>(i) == TensorKind::kExpert ? sum.experts : sum.dense) += each[i] * counts[i];
  }
  return sum;
}

LocalParameters stage_parameters(const TrainingModel& model, const TrainingConfig& config,
                                 const StageLayers& layers) noexcept {
  LocalParameters sum;
  const auto add = [&](LayerKind kind, int64_t count) {
    if (count > 0) sum.add(layer_local_parameters(model, config, kind), to_real(count));
  };
  add(LayerKind::kDense, layers.dense);
  add(LayerKind::kExperts, layers.with_experts);
  const double table = to_real(model.parameters.embedding) / to_real(config.tensor);
  if (layers.has_embedding) sum[TensorKind::kEmbedding] += table;
  if (layers.has_head) {
    sum[TensorKind::kNorm] += to_real(model.parameters.final_norm);
    sum[TensorKind::kHead] += to_real(model.parameters.head) / to_real(config.tensor);
    // A copy of it.
    if (model.shape.tied_embeddings && !layers.has_embedding) sum[TensorKind::kEmbedding] += table;
  }
  return sum;
}

LocalParameters model_parameters(const TrainingModel& model) noexcept {
  return stage_parameters(model, {},
                          {model.shape.layers - model.layers_with_experts, model.layers_with_experts, true, true});
}

LocalParameters owned_parameters(const LocalParameters& parameters, const TrainingConfig& config) noexcept {
  LocalParameters owned = parameters;
  for (double& count : owned.counts) count /= to_real(config.shards());
  owned[TensorKind::kExpert] = parameters[TensorKind::kExpert] / to_real(config.expert_shards());
  return owned;
}

std::array<double, 3> state_bytes(const LocalParameters& parameters, const TrainingConfig& config) noexcept {
  const LocalParameters owned = owned_parameters(parameters, config);
  const auto part_from = [&](int zero) -> const TensorNumbers& {
    return (config.zero >= zero ? owned : parameters).counts;
  };
  const TensorNumbers& values = part_from(3);
  const TensorNumbers& gradients = part_from(2);
  const TensorNumbers& states = part_from(1);
  const TensorNumbers& of_optimizer = optimizer_bytes(config.optimizer);
  std::array<double, 3> sum{};
  for (size_t i = 0; i < values.size(); ++i) {
    sum[0] += config.parameter_bytes[i] * values[i];
    sum[1] += config.gradient_bytes[i] * gradients[i];
    sum[2] += of_optimizer[i] * states[i];
  }
  return sum;
}

double expert_tokens(const TrainingModel& model, const TrainingConfig& config) noexcept {
  if (model.shape.experts == 0) return 0;
  return tokens_of(config) * to_real(model.shape.experts_per_token) * config.expert_load() *
         to_real(config.expert_tensor) / to_real(config.tensor);
}

LayerActivations layer_activations(const TrainingModel& model, const TrainingConfig& config, LayerKind kind) noexcept {
  const TransformerShape& shape = model.shape;
  const TrainingLayer& layer = model.layer(kind);
  const double act = config.activation_bytes;
  const double tokens = tokens_of(config);
  const double h = to_real(shape.embed) * tokens / between_ways(config);
  const double t = to_real(config.tensor);
  const double mask = config.dropout ? 1 : 0;
  // Inputs of norms and of the two regions, and the masks of dropout.
  const double inputs =
      to_real(shape.norms_per_layer) * act * h + (shape.parallel_layers ? 1 : 2) * act * h + 2 * mask * h;
  double attention = act * local_columns(layer.attention, config.tensor) * tokens;
  attention += act * to_real(shape.heads) * model.value_dim / t * tokens;  // input of the projection
  double scores = 0;
  if (config.flash_attention) {
    attention += 4 * to_real(shape.heads) / t * tokens;  // sums of exponentials, float32
  } else {
    scores = to_real(shape.heads) / t * tokens * to_real(config.sequence) * (config.dropout ? 2 * act + mask : act);
  }
  double mlp = act * mlp_values(shape, layer.mlp_width) / t * tokens;
  if (kind == LayerKind::kExperts) {
    const double routed = expert_tokens(model, config);
    mlp += act * routed *
           (2 * to_real(shape.embed) + mlp_values(shape, to_real(shape.mlp)) / to_real(config.expert_tensor));
  }
  LayerActivations result;
  result.input = act * h;
  result.complete = inputs + attention + scores + mlp;
  result.kept = config.recompute == Recompute::kSelective ? inputs + attention + mlp : result.complete;
  return result;
}

double recomputed_layers(const TrainingConfig& config, const StageLayers& layers) noexcept {
  if (config.recompute != Recompute::kFull) return 0;
  if (config.recompute_layers < 0 || config.recompute_method == RecomputeMethod::kUniform) {
    return to_real(layers.total());
  }
  return to_real(std::min(config.recompute_layers, layers.total()));
}

int64_t total(const StageMemory& memory) noexcept { return std::accumulate(memory.begin(), memory.end(), int64_t{0}); }

double stage_activations(const TrainingModel& model, const TrainingConfig& config, const StageLayers& layers,
                         int64_t stage) noexcept {
  // Part of the layers.
  const double recomputed = layers.total() > 0 ? recomputed_layers(config, layers) / to_real(layers.total()) : 0;
  double units = 1;  // stored inputs over recomputed layers
  if (config.unit_layers() > 1 && layers.total() > 0) {
    const int64_t each = (layers.total() + config.chunks - 1) / config.chunks;  // layers of a chunk
    const int64_t of_chunk = (each + config.unit_layers() - 1) / config.unit_layers();
    units = std::min(1.0, to_real(config.chunks * of_chunk) / to_real(layers.total()));
  }
  double all = 0;  // of the stage's layers for one microbatch
  const auto add = [&](LayerKind kind, int64_t count) {
    if (count == 0) return;
    const LayerActivations each = layer_activations(model, config, kind);
    all += to_real(count) * (recomputed * units * each.input + (1 - recomputed) * each.kept);
  };
  add(LayerKind::kDense, layers.dense);
  add(LayerKind::kExperts, layers.with_experts);
  const double in_flight = chunks_in_flight(config, stage) / to_real(config.chunks);
  const double h = to_real(model.shape.embed) * tokens_of(config) / between_ways(config);
  double sum = in_flight * all;
  if (layers.has_embedding && config.dropout) sum += in_flight * h;
  if (layers.has_head) {
    // One microbatch at a time, unless the schedule runs all forward passes first.
    sum += (config.schedule == PipelineSchedule::kGPipe ? in_flight : 1) * head_activations(model, config);
  }
  return sum;
}

StageHolds stage_holds(const TrainingModel& model, const TrainingConfig& config, const StageLayers& layers,
                       int64_t stage) noexcept {
  StageHolds holds;
  holds.parameters = stage_parameters(model, config, layers);
  holds.activations = holds.offloaded = stage_activations(model, config, layers, stage);
  if (layers.total() == 0) return holds;
  const LayerKind largest = layers.with_experts > 0 ? LayerKind::kExperts : LayerKind::kDense;
  const LayerActivations each = layer_activations(model, config, largest);
  holds.offloaded = std::min(holds.activations, 2 * each.kept);  // one computes, one moves
  if (config.recompute == Recompute::kFull) {
    const int64_t unit = std::min(config.unit_layers(), (layers.total() + config.chunks - 1) / config.chunks);
    holds.recomputing = to_real(unit) * each.complete - each.input;
  }
  if (config.recompute == Recompute::kSelective) holds.recomputing = each.complete - each.kept;
  // The output's are freed before layers are computed again.
  if (layers.has_head) holds.recomputing = std::max(0.0, holds.recomputing - head_activations(model, config));
  holds.largest_layer = layer_local_parameters(model, config, largest);
  return holds;
}

StageMemory stage_memory(const StageHolds& holds, const TrainingConfig& config) noexcept {
  auto [parameters, gradients, optimizer] = state_bytes(holds.parameters, config);
  if (config.offload_optimizer) optimizer = 0;
  if (sends_gradients_at_once(config)) {
    const LocalParameters::Bytes layer = owned_parameters(holds.largest_layer, config).bytes(config.gradient_bytes);
    gradients = std::min(gradients, 2 * (layer.dense + layer.experts));  // one is reduced, one moves
  }
  const double activations = config.offload_activations ? holds.offloaded : holds.activations;
  double working = holds.recomputing;
  // One layer computes and the next is gathered.
  if (config.zero == 3) {
    const LocalParameters::Bytes gathered = holds.largest_layer.bytes(config.parameter_bytes);
    working += 2 * (gathered.dense + gathered.experts);
  }
  return {whole_bytes(parameters), whole_bytes(gradients), whole_bytes(optimizer), whole_bytes(activations),
          whole_bytes(working)};
}

TrainingHardware training_hardware(const Cluster& cluster, std::string_view operation) {
  TrainingHardware hardware{device_rates(cluster, operation)};
  hardware.devices_per_host = cluster.chips_per_host() * cluster.chip().devices_per_chip;
  hardware.has_consecutive_hosts = cluster.inside().dims.size() == 1;
  if (const auto& memory = cluster.parts().host_memory) hardware.host_memory = memory->value;
  if (const auto& rate = cluster.chip().host_bandwidth) {
    hardware.host_bandwidth = rate->value / cluster.chip().devices_per_chip;
  }
  return hardware;
}

double offloaded_bytes(const StageHolds& holds, const TrainingConfig& config) noexcept {
  double sum = config.offload_activations ? holds.activations - holds.offloaded : 0;
  if (!config.offload_optimizer) return sum;
  const LocalParameters own = config.zero == 0 ? holds.parameters : owned_parameters(holds.parameters, config);
  const TensorNumbers& of_optimizer = optimizer_bytes(config.optimizer);
  for (size_t i = 0; i < own.counts.size(); ++i) sum += own.counts[i] * (of_optimizer[i] + config.gradient_bytes[i]);
  return sum;
}

int64_t fullest_host(const std::vector<double>& stages, const TrainingConfig& config,
                     const TrainingHardware& hardware) {
  const int64_t devices = config.devices();
  const int64_t of_host = std::min(hardware.devices_per_host, devices);
  if (!hardware.has_consecutive_hosts) return whole_bytes(to_real(of_host) * std::ranges::max(stages));
  const int64_t of_stage = devices / config.pipeline;
  const auto bytes_of = [&](int64_t host) {
    double sum = 0;
    for (int64_t id = host * of_host, end = std::min(id + of_host, devices); id < end;) {
      const int64_t stage = id / of_stage;
      const int64_t next = std::min(end, (stage + 1) * of_stage);
      sum += to_real(next - id) * stages[static_cast<size_t>(stage)];
      id = next;
    }
    return sum;
  };
  // The host of a stage's first device and the next one are as full as any host of this stage.
  double most = 0;
  for (int64_t stage = 0; stage < config.pipeline; ++stage) {
    const int64_t first = stage * of_stage / of_host;
    for (const int64_t host : {first, first + 1}) {
      if (host * of_host < devices) most = std::max(most, bytes_of(host));
    }
  }
  return whole_bytes(most);
}

}  // namespace artifex_devices::planner
