// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/advice/roofline.h"

#include <algorithm>
#include <cmath>

#include "artifex_devices/base/throw_error.h"

namespace artifex_devices::planner {
namespace {

bool positive(double value) noexcept { return std::isfinite(value) && value > 0; }

}  // namespace

double Roofline::critical_batch(double weight_bytes) const {
  if (!positive(weight_bytes)) {
    throw_error(
        "critical_batch: weight_bytes is {}; expected a positive number of bytes of one weight; say 2 for bfloat16",
        weight_bytes);
  }
  return weight_bytes * ridge_point() / 2;
}

std::optional<double> Roofline::critical_batch(const LayerSizes& layer) const {
  if (layer.inputs < 1 || layer.outputs < 1 || !positive(layer.input_bytes) || !positive(layer.weight_bytes) ||
      !positive(layer.output_bytes)) {
    throw_error(
        "critical_batch: expected at least 1 input and output and positive bytes per element, got inputs={}, "
        "outputs={}, input_bytes={}, weight_bytes={}, output_bytes={}; give the sizes of the weight matrix",
        layer.inputs, layer.outputs, layer.input_bytes, layer.weight_bytes, layer.output_bytes);
  }
  // 2 B D F / peak >= (s_x B D + s_w D F + s_y B F) / bandwidth, solved for B.
  const auto inputs = static_cast<double>(layer.inputs);
  const auto outputs = static_cast<double>(layer.outputs);
  const double per_example =
      2 * inputs * outputs - ridge_point() * (layer.input_bytes * inputs + layer.output_bytes * outputs);
  if (per_example <= 0) return std::nullopt;
  return ridge_point() * layer.weight_bytes * inputs * outputs / per_example;
}

Roofline make_roofline(double peak_flops, double memory_bandwidth) {
  if (!positive(peak_flops) || !positive(memory_bandwidth)) {
    throw_error(
        "roofline: peak_flops is {} and memory_bandwidth is {}; expected positive numbers of FLOP/s and bytes/s; leave "
        "out what is not known",
        peak_flops, memory_bandwidth);
  }
  return {peak_flops, memory_bandwidth};
}

}  // namespace artifex_devices::planner
