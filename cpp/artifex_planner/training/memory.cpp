// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/training/memory.h"

#include <algorithm>
#include <numeric>

#include "artifex_planner/training/buffers.h"
#include "artifex_planner/training/loss.h"
#include "artifex_planner/training/model.h"
#include "artifex_planner/training/selective.h"

namespace artifex_devices::planner {

namespace {

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

/// Values that an MLP keeps for each token: results of the first product, and the activation's.
double mlp_values(const TransformerShape& shape, double width) { return width * (shape.gated_mlp ? 3 : 2); }

}  // namespace

double output_activations(const TrainingModel& model, const TrainingConfig& config) noexcept {
  const double h = to_real(model.shape.embed) * tokens_of(config) / between_ways(config);
  const double logits = tokens_of(config) * to_real(model.shape.vocab) / to_real(config.tensor);
  return 2 * config.activation_bytes * h + loss_bytes(config) * logits;
}

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

LocalParameters embedding_parameters(const TrainingModel& model, const TrainingConfig& config,
                                     const StageLayers& layers) noexcept {
  LocalParameters sum;
  if (layers.has_embedding) sum[TensorKind::kEmbedding] = to_real(model.parameters.embedding) / to_real(config.tensor);
  return sum;
}

LocalParameters output_parameters(const TrainingModel& model, const TrainingConfig& config,
                                  const StageLayers& layers) noexcept {
  LocalParameters sum;
  if (!layers.has_head) return sum;
  sum[TensorKind::kNorm] = to_real(model.parameters.final_norm);
  sum[TensorKind::kHead] = to_real(model.parameters.head) / to_real(config.tensor);
  if (model.shape.tied_embeddings && !layers.has_embedding) {  // a copy of it
    sum[TensorKind::kEmbedding] = to_real(model.parameters.embedding) / to_real(config.tensor);
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
  sum.add(embedding_parameters(model, config, layers), 1);
  sum.add(output_parameters(model, config, layers), 1);
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
  const TensorNumbers& gradients =
      holds_gathered(config) && config.microbatches() > 1 ? parameters.counts : part_from(2);
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
  double result_of_attention = act * to_real(shape.heads) * model.value_dim / t * tokens;    // input of the projection
  if (config.flash_attention) result_of_attention += 4 * to_real(shape.heads) / t * tokens;  // sums of exponentials
  attention += result_of_attention;
  double scores = 0;
  if (!config.flash_attention) {
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
  if (recomputes_products(config)) {
    // The layer's input, half of the results of the products of attention, its result, gate and down. Routed experts
    // keep all.
    const double products = (act * local_columns(layer.attention, config.tensor) * tokens + act * h) / 2;
    const double gate = act * layer.mlp_width / t * tokens;
    const double down = shape.gated_mlp && layer.mlp_width > 0 ? act * h : 0;
    const double routed = mlp - gate * (shape.gated_mlp ? 3 : 2);
    result.kept = act * h + products + result_of_attention + gate + down + routed;
  } else {
    result.kept = config.recompute == Recompute::kSelective ? inputs + attention + mlp : result.complete;
  }
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
    sum += (config.schedule == PipelineSchedule::kGPipe ? in_flight : 1) * output_activations(model, config);
  }
  return sum;
}

StageHolds stage_holds(const TrainingModel& model, const TrainingConfig& config, const StageLayers& layers,
                       int64_t stage) noexcept {
  StageHolds holds;
  holds.parameters = stage_parameters(model, config, layers);
  holds.activations = holds.offloaded = stage_activations(model, config, layers, stage);
  holds.embedding_unit = embedding_parameters(model, config, layers);
  holds.output_unit = output_parameters(model, config, layers);
  if (model.shape.tied_embeddings && layers.has_head)
    holds.output_unit.add(holds.embedding_unit, 1);  // it is used again
  if (layers.has_head) holds.output = output_activations(model, config);
  if (layers.total() == 0) return holds;
  const LayerKind largest = layers.with_experts > 0 ? LayerKind::kExperts : LayerKind::kDense;
  const LayerActivations each = layer_activations(model, config, largest);
  holds.offloaded = std::min(holds.activations, 2 * each.kept + holds.output);  // one layer computes, one moves
  if (config.recompute == Recompute::kFull) {
    const int64_t unit = std::min(config.unit_layers(), (layers.total() + config.chunks - 1) / config.chunks);
    holds.recomputing = to_real(unit) * each.complete - each.input;
  }
  if (config.recompute == Recompute::kSelective) holds.recomputing = each.complete - each.kept;
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
  return {whole_bytes(parameters), whole_bytes(gradients), whole_bytes(optimizer), whole_bytes(activations),
          whole_bytes(working_bytes(holds, config))};
}

}  // namespace artifex_devices::planner
