// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/inference/decode.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <variant>

#include "artifex_planner/training/pass.h"

namespace artifex_devices::planner {
namespace {

constexpr double kStreamBytes = 2;  // of an element between matrices
constexpr double kOneShotLatency = 3.0e-6;
constexpr double kOneShotPerDevice = 0.36e-6;

Efficiency with_streaming(Efficiency efficiency) {
  efficiency.factors[static_cast<size_t>(Factor::kMemory)] = efficiency.factors[static_cast<size_t>(Factor::kStream)];
  return efficiency;
}

}  // namespace

double DecodeSeconds::total() const noexcept { return std::accumulate(parts.begin(), parts.end(), 0.0); }

double distinct_experts(double experts, double chosen, double tokens) noexcept {
  if (chosen >= experts) return experts;
  return -experts * std::expm1(tokens * std::log1p(-chosen / experts));
}

double one_shot_seconds(double bytes, double devices, double rate) noexcept {
  return kOneShotLatency + kOneShotPerDevice * devices + bytes * (devices - 1) / rate;
}

DecodePricer::DecodePricer(const TrainingModel& model, const InferenceConfig& config, const TrainingHardware& hardware,
                           TrainingLinks& links, const Efficiency& efficiency)
    : model_(model),
      config_(config),
      hardware_(hardware),
      links_(links),
      streaming_(with_streaming(efficiency)),
      bandwidth_(hardware.device.memory_bandwidth * efficiency[Factor::kStream]),
      rows_(to_real(config.batch)) {
  const Factor fraction = matmul_factor(config.format);
  const double peak = hardware.device.peak(config.format);
  rate_ = peak * efficiency[fraction];
  // Kernels of attention multiply in 16 bits where products have 8.
  const bool has_few_bits = fraction == Factor::kMatmulFloat8;
  attention_rate_ =
      (has_few_bits ? hardware.device.peak(MatmulFormat::kBFloat16) : peak) * efficiency[Factor::kAttentionForward];
}

double DecodePricer::product(double rows, double inner, double columns, TensorKind kind) const {
  const double weights = config_.parameter_bytes[static_cast<size_t>(kind)] * inner * columns;
  const double activations = kStreamBytes * rows * (inner + columns);
  return std::max((weights + activations) / bandwidth_, 2 * rows * inner * columns / rate_);
}

double DecodePricer::layer_products(LayerKind kind) const {
  const TransformerShape& shape = model_.shape;
  const TrainingLayer& layer = model_.layer(kind);
  double sum = 0;
  const auto add = [&](const LayerProduct& each, double rows, int64_t tensor, TensorKind tensors, double times) {
    const double ways = to_real(each.ways(tensor));
    const double inner = each.split == LayerProduct::Split::kRows ? each.inner / ways : each.inner;
    const double columns = each.split == LayerProduct::Split::kColumns ? each.columns / ways : each.columns;
    sum += times * product(rows, inner, columns, tensors);
  };
  for (const LayerProduct& each : layer.attention) add(each, rows_, config_.tensor, TensorKind::kAttention, 1);
  for (const LayerProduct& each : layer.mlp) {
    const bool is_router = each.split == LayerProduct::Split::kNone;
    add(each, rows_, config_.tensor, is_router ? TensorKind::kRouter : TensorKind::kMlp, 1);
  }
  if (kind != LayerKind::kExperts) return sum;
  const double chosen = to_real(shape.experts_per_token);
  const double used = distinct_experts(to_real(shape.experts), chosen, rows_);
  const int64_t tensor = config_.expert > 1 ? 1 : config_.tensor;
  for (const LayerProduct& each : layer.expert) {
    add(each, rows_ * chosen / used, tensor, TensorKind::kExpert, used / to_real(config_.expert));
  }
  return sum;
}

double DecodePricer::attention(int64_t context) const {
  const TransformerShape& shape = model_.shape;
  // Each element of a cached key or value is in one product for each query head that shares it. A latent vector is the
  // key and the value of all heads.
  const double latent = to_real(shape.kv_lora_rank);
  const double rotary = to_real(shape.rope_head_dim);
  const double uses = latent > 0 ? to_real(shape.heads) * (2 * latent + rotary) / (latent + rotary)
                                 : to_real(shape.heads) / to_real(shape.kv_heads);
  const double flops = 2 * uses * to_real(cache_elements(shape, context)) / to_real(config_.tensor);
  const double bytes = local_cache_bytes(shape, config_, context);
  return rows_ * std::max(bytes / bandwidth_, flops / attention_rate_);
}

double DecodePricer::all_reduce(double bytes) {
  if (config_.tensor == 1) return 0;
  const double best = links_.seconds(CollectiveOp::kAllReduce, bytes, config_.tensor, 1, streaming_);
  const NodeGroup* const group = links_.group(config_.tensor, 1);
  if (group == nullptr || group->nodes > 1) return best;
  const auto devices = to_real(config_.tensor);
  double rate = 0;
  if (const auto* behind = std::get_if<SwitchGroup>(&group->local)) rate = behind->egress;
  if (const auto* mesh = std::get_if<FullMeshGroup>(&group->local)) rate = mesh->link * (devices - 1);
  if (rate <= 0) return best;
  return std::min(best, one_shot_seconds(bytes, devices, rate * streaming_[Factor::kLinkFraction]));
}

double DecodePricer::head() const {
  const TransformerShape& shape = model_.shape;
  return product(rows_, to_real(shape.embed), to_real(shape.vocab) / to_real(config_.tensor),
                 shape.tied_embeddings ? TensorKind::kEmbedding : TensorKind::kHead);
}

DecodeSeconds DecodePricer::step(int64_t context) {
  const TransformerShape& shape = model_.shape;
  const TrainingConfig pass = pass_config(config_, 1);
  PassPricer pricer(model_, pass, hardware_, links_, streaming_);
  DecodeSeconds seconds;
  const auto add_layers = [&](LayerKind kind, int64_t count) {
    if (count == 0) return;
    seconds[DecodePart::kProducts] += to_real(count) * layer_products(kind);
    seconds[DecodePart::kElementwise] += to_real(count) * pricer.layer(kind, false).elementwise;
  };
  add_layers(LayerKind::kDense, shape.layers - model_.layers_with_experts);
  add_layers(LayerKind::kExperts, model_.layers_with_experts);
  seconds[DecodePart::kProducts] += head();
  seconds[DecodePart::kElementwise] += pricer.embedding(false).elementwise + pricer.head(false).elementwise;
  seconds[DecodePart::kAttention] = attention(context);
  const double stream = rows_ * to_real(shape.embed) * kStreamBytes;
  // After attention and after the MLP or the experts, whose devices all have all tokens; and of the embedding.
  const double sums = to_real(shape.layers * (shape.parallel_layers ? 1 : 2) + 1);
  seconds[DecodePart::kTensor] = sums * all_reduce(stream);
  if (config_.pipeline > 1) {
    seconds[DecodePart::kPipeline] =
        to_real(config_.pipeline - 1) * links_.send_seconds(stream, config_.pipeline, config_.tensor, streaming_);
  }
  seconds[DecodePart::kFixed] = to_real(shape.layers) * streaming_[Factor::kDecodeLayerSeconds] +
                                to_real(model_.layers_with_experts) * streaming_[Factor::kDecodeExpertSeconds];
  return seconds;
}

}  // namespace artifex_devices::planner
