// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "artifex_planner/training/shape.h"

namespace artifex_devices::planner {

/// A matrix product of a layer for each token, and how its matrix is sharded over the tensor axis.
struct LayerProduct {
  enum class Split : uint8_t { kNone, kColumns, kRows };
  double inner = 0;
  double columns = 0;
  Split split = Split::kNone;
  int64_t most_ways = 0;  // maximum ways; beyond it columns are replicated; 0: no limit
  int64_t ways(int64_t tensor) const noexcept {
    if (split == Split::kNone) return 1;
    return most_ways > 0 && most_ways < tensor ? most_ways : tensor;
  }
};

/// Properties of a dense layer or a layer with experts that the planner of training runs needs.
struct TrainingLayer {
  std::vector<LayerProduct> attention;
  std::vector<LayerProduct> mlp;     // of a dense layer, or of the shared experts and the router
  std::vector<LayerProduct> expert;  // of one expert
  double mlp_width = 0;              // of the MLP or the shared experts together
  double other_parameters = 0;       // outside the matrices: norms and biases; on each tensor rank
  double router_parameters = 0;      // part of `mlp`; on each tensor rank
  double expert_parameters = 0;      // of all routed experts
};

/// Sizes and parameters of a model that do not depend on how it is sharded.
struct TrainingModel {
  TransformerShape shape;
  ShapeParameters parameters;
  std::array<TrainingLayer, 2> layers;  // by LayerKind
  int64_t layers_with_experts = 0;
  int64_t layers_with_window = 0;
  double value_dim = 0;  // of a head

  const TrainingLayer& layer(LayerKind kind) const noexcept { return layers[static_cast<size_t>(kind)]; }
};

/// Checks the shape and derives the rest. Throws InvalidArgument for shapes that do not fit.
TrainingModel training_model(const TransformerShape& shape);

/// Products of attention that one token has with all tokens it sees, averaged over the layers. A token sees its
/// sequence, or the window in layers that have a window; with `is_causal` half of it.
double attended_tokens(const TrainingModel& model, double sequence, bool is_causal) noexcept;

/// FLOPs of so many sequences in one training step as publications count them (PaLM, appendix B, arXiv:2204.02311): 6
/// for each parameter of a product and token, and attention in full without regard to masks; nothing for recomputation
/// and the embedding's lookup. Example: GPT-3 175B has 6 x 174.6e9 + 12 x 96 x 12288 x 2048 for each token of 2,048.
double model_flops(const TrainingModel& model, double sequences, double sequence) noexcept;

}  // namespace artifex_devices::planner
