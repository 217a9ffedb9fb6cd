// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/training/loss.h"

#include "artifex_planner/training/model.h"

namespace artifex_devices::planner {

double loss_bytes(const TrainingConfig& config) noexcept {
  constexpr double kFloat32Arrays = 3 * 4;  // log-softmax, its gradient, and the gradient of the float32 logits
  const double plain = config.activation_bytes + kFloat32Arrays;
  switch (config.loss) {
    case TrainingLoss::kPlain:
      return plain;
    case TrainingLoss::kChunked:
      return plain / to_real(config.loss_chunks);
    case TrainingLoss::kFused:
      return config.activation_bytes;
  }
  return plain;
}

}  // namespace artifex_devices::planner
