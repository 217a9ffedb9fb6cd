// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "artifex_planner/training/memory.h"

namespace artifex_devices::planner {

/// Whether ZeRO-3 holds all gathered parameters of a stage, and its full gradients until the last microbatch: between
/// pipeline stages FSDP2 gathers one time in each step instead of in each microbatch (TorchTitan,
/// torchtitan/models/llama3/parallelize.py, reshard_after_forward). Assumed where no framework is named.
inline bool holds_gathered(const TrainingConfig& config) noexcept {
  return config.zero == 3 && config.pipeline > 1 &&
         (config.framework == TrainingFramework::kAny || config.framework == TrainingFramework::kTorch);
}

/// Bytes of one parameter of each kind while it is gathered: FSDP2 gathers float32 parameters in the dtype of the
/// activations (MixedPrecisionPolicy.param_dtype).
TensorNumbers gathered_bytes(const TrainingConfig& config) noexcept;

/// Bytes that a stage needs beside its states and its activations at the fullest moment of its passes: recomputed
/// activations, gathered parameters and gradients that are reduced. The embedding, each layer and the output with the
/// last norm are gathered and reduced separately, and the next unit is gathered while one computes. A unit that is
/// reduced has its gradients in the dtype of the activations and a copy in the dtype of gradients
/// (MixedPrecisionPolicy.reduce_dtype). Later moments need what earlier ones have freed: the output's activations when
/// its gradients are reduced, all activations when the gradients of the embedding are.
///
/// XLA gathers one layer and the next, and reduces gradients without a copy.
double working_bytes(const StageHolds& holds, const TrainingConfig& config) noexcept;

}  // namespace artifex_devices::planner
