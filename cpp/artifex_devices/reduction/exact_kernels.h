// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace artifex_devices {

/// Numbers of one call of `convert`, `largest` or `extract`, at most.
inline constexpr int64_t kExactRun = 2048;
/// Sums of one call of `extract`, at most: each holds the 42 bits below those of the sum before.
inline constexpr int kExactLevels = 3;
/// Columns of one call of `cascade`, at most.
inline constexpr int64_t kExactColumns = 256;

/// What a number contributes to the sum.
enum class ExactTerm : uint8_t { kValue, kSquare, kProduct };

/// Sums of columns: `sum` + `rest` is exact where `is_inexact` is 0. `sum` alone has the sign of a sum of zero.
struct ExactColumns {
  alignas(64) double sum[kExactColumns];
  alignas(64) double rest[kExactColumns];
  alignas(64) int64_t is_inexact[kExactColumns];
};

/// The loops for one instruction set. Arrays are dense.
struct ExactKernels {
  /// Writes the terms of `count` numbers as doubles (squares, or products by `others`): exact for float32, rounded for
  /// float64. By ExactTerm.
  using Convert32 = void (*)(const float* from, const float* others, int64_t count, double* to) noexcept;
  using Convert64 = void (*)(const double* from, const double* others, int64_t count, double* to) noexcept;
  Convert32 convert32[3];
  Convert64 convert64[3];
  /// Returns the sum, if it is exact whatever the order: where the exponents of all numbers but zeros are so near to
  /// each other that no bit of a partial sum is lost. Returns NaN otherwise, and for zeros only.
  double (*near32)(const float* from, int64_t count) noexcept;
  /// Returns the greatest of the bits of absolute values.
  int64_t (*largest)(const double* from, int64_t count) noexcept;
  /// Writes exact sums of the leading bits of all numbers: at level i the multiples of the last bit of magic[i] that
  /// are nearest to what is left of them. Returns whether nothing is left. By number of levels, from 1 on.
  bool (*extract[kExactLevels])(const double* from, int64_t count, const double* magic, double* sums) noexcept;
  /// Adds rows to columns.
  void (*cascade32)(const float* const* rows, int64_t count, int64_t width, ExactColumns* to) noexcept;
  void (*cascade64)(const double* const* rows, int64_t count, int64_t width, ExactColumns* to) noexcept;
};

/// The loops for active_isa().
const ExactKernels& exact_kernels() noexcept;

extern const ExactKernels exact_kernels_baseline;
#if defined(__x86_64__)
extern const ExactKernels exact_kernels_avx2;
extern const ExactKernels exact_kernels_avx512;
#endif

}  // namespace artifex_devices
