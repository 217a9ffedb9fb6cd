// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "artifex_devices/collective/combine.h"

namespace artifex_devices {

// Floats of 16 bits: `type` is kFloat16 or kBFloat16. Bits are the same on every processor: conversions round to the
// nearest, ties to even, and keep NaN a NaN; the order of additions is fixed.

/// kFloat16 or kBFloat16; nothing for other dtypes.
constexpr std::optional<ArithmeticType> half_type(DType dtype) noexcept {
  const std::optional<ArithmeticType> type = row_of(dtype).arithmetic;
  return type == ArithmeticType::kFloat16 || type == ArithmeticType::kBFloat16 ? type : std::nullopt;
}

void widen(ArithmeticType type, const void* from, int64_t count, float* to) noexcept;
void narrow(ArithmeticType type, const float* from, int64_t count, void* to) noexcept;

/// Divides each number in float32, in place.
void divide(ArithmeticType type, void* data, int64_t count, float by) noexcept;

/// Reduces a dense array of shape (outer, reduced, inner) over its middle dimension, in float32: `out` has shape
/// (outer, inner). `reduced` and `inner` are at least 1. Max and min of a NaN are NaN. Rounding errors of a sum with
/// `inner` 1 grow with the logarithm of `reduced`; otherwise with the number of rows of 4,096 numbers.
void fold(Reduction reduction, ArithmeticType type, const void* from, int64_t outer, int64_t reduced, int64_t inner,
          float* out) noexcept;

}  // namespace artifex_devices
