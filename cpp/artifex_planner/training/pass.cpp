// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/training/pass.h"

#include <algorithm>

#include "artifex_planner/training/model.h"

namespace artifex_devices::planner {

namespace {

double itemsize_of(MatmulFormat format) {
  if (matmul_factor(format) == Factor::kMatmulFloat8) return 1;
  return format == MatmulFormat::kFloat32 || format == MatmulFormat::kTensorFloat32 ? 4 : 2;
}

}  // namespace

PassSeconds& PassSeconds::add(const PassSeconds& other, double times) {
  products += times * other.products;
  attention += times * other.attention;
  scores += times * other.scores;
  elementwise += times * other.elementwise;
  tensor += times * other.tensor;
  tensor_beside += times * other.tensor_beside;
  context += times * other.context;
  expert += times * other.expert;
  fixed += times * other.fixed;
  add_messages(messages, other.messages, times);
  return *this;
}

PassPricer::PassPricer(const TrainingModel& model, const TrainingConfig& config, const TrainingHardware& hardware,
                       TrainingLinks& links, const Efficiency& efficiency)
    : model_(model), config_(config), links_(links), efficiency_(efficiency) {
  const Factor fraction = matmul_factor(config.format);
  rates_ = {hardware.device.peak(config.format), hardware.device.memory_bandwidth, efficiency[fraction],
            itemsize_of(config.format)};
  expert_rates_ = rates_;
  expert_rates_.fraction *= efficiency[Factor::kGrouped];
  head_rates_ = rates_;
  if (fraction == Factor::kMatmulFloat8) {
    head_rates_ = {hardware.device.peak(MatmulFormat::kBFloat16), rates_.memory_bandwidth, efficiency[Factor::kMatmul],
                   2};
  }
  tokens_ = to_real(config.microbatch * config.sequence) / to_real(config.context);
}

double PassPricer::products(const std::vector<LayerProduct>& all, const ProductRates& rates, double tokens,
                            int64_t tensor, bool is_backward) const {
  double sum = 0;
  for (const LayerProduct& each : all) {
    const double ways = to_real(each.ways(tensor));
    const double inner = each.split == LayerProduct::Split::kRows ? each.inner / ways : each.inner;
    const double columns = each.split == LayerProduct::Split::kColumns ? each.columns / ways : each.columns;
    if (!is_backward) {
      sum += product_seconds(tokens, columns, inner, rates, efficiency_);
    } else {  // gradients of the input and of the matrix
      sum += product_seconds(tokens, inner, columns, rates, efficiency_);
      sum += product_seconds(inner, columns, tokens, rates, efficiency_);
    }
  }
  return sum;
}

double PassPricer::cast_bytes(const std::vector<LayerProduct>& all, double tokens, int64_t tensor,
                              bool is_backward) const {
  if (config_.format != MatmulFormat::kFloat8) return 0;
  // An operand is read for its scale and read again to be converted. It is written twice, because 8-bit products on
  // Hopper need the inner dimension of both operands to be consecutive, and the gradient of the matrix has another
  // inner dimension (NVIDIA Transformer Engine, documentation of FP8 current scaling). Blackwell needs no second copy;
  // the model assumes one there too.
  const double each = 2 * config_.activation_bytes + 2;
  double bytes = 0;
  for (const LayerProduct& product : all) {
    const double ways = to_real(product.ways(tensor));
    const double inner = product.split == LayerProduct::Split::kRows ? product.inner / ways : product.inner;
    const double columns = product.split == LayerProduct::Split::kColumns ? product.columns / ways : product.columns;
    bytes += tokens * (is_backward ? columns : inner) * each;
  }
  return bytes;
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
  double fraction = efficiency_[is_backward ? Factor::kAttentionBackward : Factor::kAttentionForward];
  if (config_.flash_attention && config_.attention_kernel == AttentionKernel::kFlash2) {
    fraction *= efficiency_[Factor::kFlash2];
  }
  // The last of c consecutive parts of a sequence sees c - 1/2 parts, the mean is c / 2.
  const double c = to_real(config_.context);
  const bool is_balanced = config_.context_balanced || config_.context_method == ContextMethod::kAllToAll || !skips;
  const double load = is_balanced ? 1 : (2 * c - 1) / c;
  pass.attention += load * factor * flops / (head_rates_.peak * fraction);
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
  const double passes = is_backward ? 2 : 1;
  const double act = config_.activation_bytes;
  const bool is_fused = config_.compiled;
  // Between the sharded regions: each norm reads and writes the stream, with the addition before it two of each. One
  // that is not fused converts to float32 and back, and has a kernel each for the square, mean, product, scale and
  // addition.
  const double between = to_real(shape.embed) / (config_.sequence_parallel ? to_real(config_.tensor) : 1);
  double bytes = (is_fused ? 4 * act : 28 + 7 * act) * to_real(shape.norms_per_layer) * between;
  if (config_.dropout) bytes += 2 * (2 * act + 1) * between;
  // Rotary positions of queries and keys, in float32 where they are not fused.
  const double rotated = to_real((shape.heads + shape.kv_heads) * shape.head_dim) / to_real(config_.tensor);
  bytes += (is_fused ? 2 * act : 16 + 2 * act) * rotated;
  // Each step of a ring adds its result to a sum in float32.
  if (config_.context > 1 && config_.context_method == ContextMethod::kRing) {
    const double out = to_real(shape.heads) * model_.value_dim / to_real(config_.tensor);
    bytes += to_real(config_.context - 1) * (8 + act) * out;
  }
  // The activation function reads one or two values and writes one; not fused, its product is a second kernel.
  const double values = !shape.gated_mlp ? 2 : is_fused ? 3 : 5;
  bytes += act * values * layer.mlp_width / to_real(config_.tensor);
  double all = bytes * tokens_ + cast_bytes(layer.attention, tokens_, config_.tensor, is_backward) / passes +
               cast_bytes(layer.mlp, tokens_, config_.tensor, is_backward) / passes;
  if (kind == LayerKind::kExperts) {
    const double routed = expert_tokens(model_, config_);
    // Tokens are sorted by expert and the results put back, each read and written; with experts on several devices
    // also after tokens arrive and before results leave.
    const double moves = config_.expert > 1 ? 8 : 4;
    all +=
        routed * act * (values * to_real(shape.mlp) / to_real(config_.expert_tensor) + moves * to_real(shape.embed)) +
        cast_bytes(layer.expert, routed, config_.expert_tensor, is_backward) / passes;
  }
  return passes * all / (rates_.memory_bandwidth * efficiency_[Factor::kMemory]);
}

double PassPricer::tensor_seconds(CollectiveOp op, double bytes) {
  return links_.seconds(op, bytes, config_.tensor, 1, efficiency_);
}

void PassPricer::add_region(PassSeconds& pass, double bytes, bool is_backward) {
  if (config_.tensor == 1) return;
  if (!config_.sequence_parallel) {
    pass.tensor += tensor_seconds(CollectiveOp::kAllReduce, bytes);
    return;
  }
  pass.tensor += tensor_seconds(CollectiveOp::kAllGather, bytes) + tensor_seconds(CollectiveOp::kReduceScatter, bytes);
  // The backward pass gathers the region's input again, at the same time as the product that does not need it
  // (arXiv:2205.05198, section 4.2.2).
  if (is_backward) pass.tensor_beside += tensor_seconds(CollectiveOp::kAllGather, bytes);
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
      return links_.send_seconds((is_backward ? 2 : 1) * keys, config_.context, config_.tensor, efficiency_, c - 1);
    case ContextMethod::kAllGather: {
      const double gather =
          links_.seconds(CollectiveOp::kAllGather, c * keys, config_.context, config_.tensor, efficiency_);
      if (!is_backward) return gather;
      return gather +
             links_.seconds(CollectiveOp::kReduceScatter, c * keys, config_.context, config_.tensor, efficiency_);
    }
    case ContextMethod::kAllToAll: {
      const double queries = act * tokens_ * to_real(shape.heads * shape.head_dim) / to_real(config_.tensor);
      const auto moved = [&](double bytes, double times) {
        return links_.seconds(CollectiveOp::kAllToAll, c * bytes, config_.context, config_.tensor, efficiency_, times);
      };
      return moved(queries, 2) + moved(keys, 1);
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
  pass.products += own * products(layer.expert, expert_rates_, routed / own, config_.expert_tensor, is_backward);
  const double bytes = routed * to_real(shape.embed) * config_.activation_bytes;
  if (config_.expert > 1) {
    const double share = config_.expert_tensor > 1 && config_.sequence_parallel ? to_real(config_.expert_tensor) : 1;
    // Padded slots are sent separately, because the slots of the experts of one node hold different tokens.
    TokenRoutes routes{to_real(shape.experts_per_token), std::max<int64_t>(shape.expert_groups, 1),
                       std::max<int64_t>(shape.groups_per_token, 1)};
    if (config_.expert_padding) routes.copies = 1;
    pass.expert += links_.expert_seconds(bytes / share, routes, config_.expert, config_.expert_tensor, efficiency_, 2);
  }
  if (config_.expert_tensor > 1) add_region(pass, bytes, is_backward);
  pass.fixed += efficiency_[Factor::kExpertSeconds];
}

PassSeconds PassPricer::layer(LayerKind kind, bool is_backward) {
  const TrainingLayer& sizes = model_.layer(kind);
  PassSeconds pass;
  pass.products = products(sizes.attention, rates_, tokens_, config_.tensor, is_backward) +
                  products(sizes.mlp, rates_, tokens_, config_.tensor, is_backward);
  add_attention(pass, is_backward);
  pass.elementwise = elementwise_seconds(kind, is_backward);
  pass.context = context_seconds(is_backward);
  const double stream = tokens_ * to_real(model_.shape.embed) * config_.activation_bytes;
  add_region(pass, stream, is_backward);
  if (sizes.mlp_width > 0 && !model_.shape.parallel_layers) add_region(pass, stream, is_backward);
  if (kind == LayerKind::kExperts) add_experts(pass, is_backward);
  pass.fixed += efficiency_[Factor::kLayerSeconds];
  pass.messages = links_.take_messages();
  return pass;
}

PassSeconds PassPricer::embedding(bool is_backward) {
  PassSeconds pass;
  const double stream = tokens_ * to_real(model_.shape.embed) * config_.activation_bytes;
  pass.elementwise = (is_backward ? 2 : 1) * 2 * stream / (rates_.memory_bandwidth * efficiency_[Factor::kMemory]);
  if (!is_backward && config_.tensor > 1) {
    pass.tensor =
        tensor_seconds(config_.sequence_parallel ? CollectiveOp::kReduceScatter : CollectiveOp::kAllReduce, stream);
  } else if (config_.tensor > 1 && config_.sequence_parallel) {
    pass.tensor = tensor_seconds(CollectiveOp::kAllGather, stream);
  }
  pass.messages = links_.take_messages();
  return pass;
}

PassSeconds PassPricer::head(bool is_backward) {
  PassSeconds pass;
  const double columns = to_real(model_.shape.vocab) / to_real(config_.tensor);
  const LayerProduct product{to_real(model_.shape.embed), to_real(model_.shape.vocab), LayerProduct::Split::kColumns,
                             0};
  pass.products = products({product}, head_rates_, tokens_, config_.tensor, is_backward);
  // Logits are written and read in float32 by the loss.
  pass.elementwise = tokens_ * columns * 8 / (rates_.memory_bandwidth * efficiency_[Factor::kMemory]);
  const double stream = tokens_ * to_real(model_.shape.embed) * config_.activation_bytes;
  if (config_.tensor > 1 && config_.sequence_parallel) {
    pass.tensor = tensor_seconds(is_backward ? CollectiveOp::kReduceScatter : CollectiveOp::kAllGather, stream);
  } else if (config_.tensor > 1 && is_backward) {
    pass.tensor = tensor_seconds(CollectiveOp::kAllReduce, stream);
  }
  pass.messages = links_.take_messages();
  return pass;
}

}  // namespace artifex_devices::planner
