// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/training/buffers.h"

#include <algorithm>

namespace artifex_devices::planner {

namespace {

double bytes_of(const LocalParameters& unit, const TensorNumbers& each) noexcept {
  const LocalParameters::Bytes bytes = unit.bytes(each);
  return bytes.dense + bytes.experts;
}

}  // namespace

TensorNumbers gathered_bytes(const TrainingConfig& config) noexcept {
  TensorNumbers each = config.parameter_bytes;
  for (double& bytes : each) bytes = std::min(bytes, config.activation_bytes);
  return each;
}

double working_bytes(const StageHolds& holds, const TrainingConfig& config) noexcept {
  const double recomputing = holds.recomputing - holds.output;
  const TensorNumbers each = gathered_bytes(config);
  if (config.framework == TrainingFramework::kMaxText) {
    return std::max(recomputing, 0.0) + (config.zero == 3 ? 2 * bytes_of(holds.largest_layer, each) : 0);
  }
  TensorNumbers sent = config.gradient_bytes;
  for (double& bytes : sent) bytes += config.activation_bytes;
  const auto gathered = [&](const LocalParameters& unit) { return config.zero == 3 ? bytes_of(unit, each) : 0; };
  const auto reduced = [&](const LocalParameters& unit) { return config.zero >= 2 ? bytes_of(unit, sent) : 0; };
  const double layer = gathered(holds.largest_layer);
  const double in_layers = recomputing + reduced(holds.largest_layer);
  const double after_output = reduced(holds.output_unit) - holds.output;
  if (holds_gathered(config)) return gathered(holds.parameters) + std::max({in_layers, after_output, 0.0});
  const double output = gathered(holds.output_unit) + layer;
  const double activations = config.offload_activations ? holds.offloaded : holds.activations;
  const double embedding = gathered(holds.embedding_unit) + reduced(holds.embedding_unit) - activations;
  return std::max({output, output + after_output, 2 * layer + in_layers, embedding});
}

}  // namespace artifex_devices::planner
