// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/training/selective.h"

namespace artifex_devices::planner {

namespace {

double elements_of(const std::vector<LayerProduct>& products) noexcept {
  double sum = 0;
  for (const LayerProduct& each : products) sum += each.inner * each.columns;
  return sum;
}

/// Elements of a layer's matrices whose products are computed again.
double recomputed_elements(const TrainingModel& model, const TrainingLayer& layer) noexcept {
  return elements_of(layer.attention) / 2 + elements_of(layer.mlp) / (model.shape.gated_mlp ? 3 : 2);
}

}  // namespace

double recomputed_products(const TrainingModel& model, LayerKind kind) noexcept {
  const TrainingLayer& layer = model.layer(kind);
  const double routed = to_real(model.shape.experts_per_token) * elements_of(layer.expert);
  return recomputed_elements(model, layer) / (elements_of(layer.attention) + elements_of(layer.mlp) + routed);
}

double recomputed_products_flops(const TrainingModel& model) noexcept {
  const double with_experts = to_real(model.layers_with_experts);
  return 2 *
         ((to_real(model.shape.layers) - with_experts) * recomputed_elements(model, model.layer(LayerKind::kDense)) +
          with_experts * recomputed_elements(model, model.layer(LayerKind::kExperts)));
}

}  // namespace artifex_devices::planner
