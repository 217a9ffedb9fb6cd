// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/training/tensors.h"

namespace artifex_devices::planner {

std::string_view to_string(TensorKind kind) noexcept {
  constexpr std::array<std::string_view, kTensorKindCount> kNames = {"embedding", "head",   "norm",  "attention",
                                                                     "mlp",       "router", "expert"};
  return kNames[static_cast<size_t>(kind)];
}

double optimizer_bytes(TrainingOptimizer optimizer, TensorKind kind) noexcept {
  switch (optimizer) {
    case TrainingOptimizer::kSgd:
      return 0;
    case TrainingOptimizer::kAdam:
      return 8;
    case TrainingOptimizer::kAdamMaster:
      return 12;
    case TrainingOptimizer::kAdafactor:
      return kind == TensorKind::kNorm ? 8 : 4;
    case TrainingOptimizer::kMuon:
      return kind == TensorKind::kEmbedding || kind == TensorKind::kHead || kind == TensorKind::kNorm ? 12 : 8;
  }
  return 0;
}

}  // namespace artifex_devices::planner
