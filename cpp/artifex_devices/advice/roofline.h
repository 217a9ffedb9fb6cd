// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

namespace artifex_devices {

/// Sizes of one layer X[B, inputs] . W[inputs, outputs], for its exact critical batch; bytes of one element each.
struct LayerSizes {
  int64_t inputs = 0;
  int64_t outputs = 0;
  double input_bytes = 2;
  double weight_bytes = 2;
  double output_bytes = 2;
};

/// What hardware can do at most: FLOP/s of one number format and bytes/s of its memory. Arithmetic is the limit of a
/// computation with at least `ridge_point()` FLOP a byte, memory is that of others.
struct Roofline {
  double peak_flops = 0;        // FLOP/s, dense
  double memory_bandwidth = 0;  // bytes/s

  double ridge_point() const noexcept { return peak_flops / memory_bandwidth; }

  /// FLOP/s at most for a computation with `flops_per_byte`.
  double attainable_flops(double flops_per_byte) const noexcept;

  /// Batch from which on a product with a weight matrix is limited by arithmetic, where the batch is far below the
  /// matrix's sides and so its weights are nearly all that is read: weight_bytes * peak / (2 * bandwidth). Throws
  /// InvalidArgument unless weight_bytes is positive and finite.
  double critical_batch(double weight_bytes) const;

  /// The same with activations counted: reading X and writing the result take time too. Nothing: memory is the limit of
  /// every batch (never compute-bound). Throws InvalidArgument for sizes below 1.
  std::optional<double> critical_batch(const LayerSizes& layer) const;
};

/// Throws InvalidArgument unless both are positive and finite.
Roofline make_roofline(double peak_flops, double memory_bandwidth);

}  // namespace artifex_devices
