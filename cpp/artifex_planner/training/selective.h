// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "artifex_planner/training/config.h"
#include "artifex_planner/training/model.h"

namespace artifex_devices::planner {

/// Whether selective recomputation computes products again. PyTorch's does: TorchTitan stores the results of about half
/// of a layer's products (queries, values, gate and down: torchtitan/models/llama3/parallelize.py) and the result of
/// attention. Megatron-LM's computes only the scores of attention again.
inline bool recomputes_products(const TrainingConfig& config) noexcept {
  return config.recompute == Recompute::kSelective && config.framework == TrainingFramework::kTorch;
}

/// Part of a layer's products, by FLOPs, that this computes again: keys and the output of attention, which have as many
/// as queries and values, and the second of the MLP's three matrices, or of its two. Routed experts keep all results.
double recomputed_products(const TrainingModel& model, LayerKind kind) noexcept;
/// FLOPs of these products in all layers, for one token.
double recomputed_products_flops(const TrainingModel& model) noexcept;

}  // namespace artifex_devices::planner
