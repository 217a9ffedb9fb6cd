// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/step/expected.h"

#include <algorithm>

#include "artifex_devices/base/interrupt.h"
#include "artifex_planner/step/cost.h"

namespace artifex_devices::planner {
namespace {

constexpr size_t kCollectivesBetweenPolls = 256;

/// Part of the peak that a product reaches.
double product_fraction(const StepProduct& product, const Efficiency& efficiency) {
  if (product.is_attention) {
    return efficiency[product.is_backward() ? Factor::kAttentionBackward : Factor::kAttentionForward];
  }
  return efficiency[matmul_factor(product.format)] *
         tile_efficiency(product.rows, product.columns, efficiency, product.batches);
}

}  // namespace

double ExpectedStep::hidden() const noexcept { return std::min(weights, compute() + layers); }

double expected_product_seconds(const StepProduct& product, const DeviceRates& hardware, const Efficiency& efficiency) {
  const double peak = hardware.peak(product.format) * product_fraction(product, efficiency);
  const double bandwidth = hardware.memory_bandwidth * efficiency[Factor::kMemory];
  return std::max(product.flops.at(1) / peak, product.bytes.at(1) / bandwidth);
}

ExpectedStep expected_device_seconds(const StepWork& work, const DeviceRates& hardware, const Efficiency& efficiency) {
  ExpectedStep step;
  for (const StepProduct& product : work.products) {
    (product.is_attention ? step.attention : step.products) += expected_product_seconds(product, hardware, efficiency);
  }
  const double bandwidth = hardware.memory_bandwidth * efficiency[Factor::kMemory];
  step.elementwise = work.elementwise_bytes.at(1) / bandwidth;
  step.update = work.update_bytes.at(1) / bandwidth;
  step.layers = static_cast<double>(work.layer_passes) * efficiency[Factor::kLayerSeconds];
  if (work.is_training) step.once = efficiency[Factor::kStepSeconds];
  return step;
}

ExpectedStep expected_step(const StepWork& work, const DeviceRates& hardware, const StepNetwork& network,
                           const Efficiency& efficiency) {
  ExpectedStep step = expected_device_seconds(work, hardware, efficiency);
  for (size_t i = 0; i < work.collectives.size(); ++i) {
    if (i % kCollectivesBetweenPolls == 0) check_interrupt();
    const StepCollective& each = work.collectives[i];
    const double seconds = step_collective_cost(each, network, efficiency).seconds() * static_cast<double>(each.count);
    (each.is_parameter ? step.weights : step.activations) += seconds;
  }
  return step;
}

}  // namespace artifex_devices::planner
