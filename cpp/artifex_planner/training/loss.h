// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "artifex_planner/training/config.h"

namespace artifex_devices::planner {

/// Bytes that the loss holds for each logit at its fullest moment, a bytes being those of an activation:
///
/// - plain, a + 12: F.cross_entropy(logits.float(), labels) (TorchTitan, torchtitan/components/loss.py). In the
///   backward pass there are the logits (a), their log-softmax, which the forward pass stores (4), its gradient, which
///   nll_loss_backward fills with zeros and one number for each token (4), and the gradient of the float32 logits (4).
/// - chunked, (a + 12) / chunks: the output's product, the loss and its gradient run for one chunk after another.
///   TorchTitan measured about 13 bytes for each logit of a chunk (pytorch/torchtitan#4514).
/// - fused, a: the gradient overwrites the logits (LigerCrossEntropy of linkedin/Liger-Kernel). Kernels that contain
/// the
///   output's product too hold less.
///
/// Example: 14 bytes for the plain loss of bfloat16 logits, 1.75 in 8 chunks, 2 fused.
double loss_bytes(const TrainingConfig& config) noexcept;

}  // namespace artifex_devices::planner
