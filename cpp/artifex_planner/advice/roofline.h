// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

namespace artifex_devices::planner {

/// Sizes of one layer X[B, inputs] . W[inputs, outputs], and bytes of one element of each array.
struct LayerSizes {
  int64_t inputs = 0;
  int64_t outputs = 0;
  double input_bytes = 2;
  double weight_bytes = 2;
  double output_bytes = 2;
};

/// Peak rates of hardware: FLOP/s for one number format and bytes/s of its memory. Computations with at least
/// `ridge_point()` FLOP per byte are limited by arithmetic, others by memory.
struct Roofline {
  double peak_flops = 0;        // FLOP/s, dense
  double memory_bandwidth = 0;  // bytes/s

  double ridge_point() const noexcept { return peak_flops / memory_bandwidth; }

  /// Returns the smallest batch at which a product with a weight matrix is limited by arithmetic, if the batch is far
  /// smaller than the matrix's sides and nearly all bytes read are weights: weight_bytes * peak / (2 * bandwidth).
  /// Throws InvalidArgument unless weight_bytes is positive and finite.
  double critical_batch(double weight_bytes) const;

  /// The same, including the time for reading X and writing the result. Returns nothing if every batch is limited by
  /// memory. Throws InvalidArgument for sizes below 1.
  std::optional<double> critical_batch(const LayerSizes& layer) const;
};

/// Throws InvalidArgument unless both numbers are positive and finite.
Roofline make_roofline(double peak_flops, double memory_bandwidth);

}  // namespace artifex_devices::planner
