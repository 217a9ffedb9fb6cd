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
/// Rows of one call of `near_columns32` or `extract_columns`, at most.
inline constexpr int64_t kExactRows = 64;

/// What a number contributes to the sum: itself, its absolute value, its square, its product by another number, or the
/// square of its difference from another number.
enum class ExactTerm : uint8_t { kValue, kAbsolute, kSquare, kProduct, kDeviation };

/// Sums of columns: `sum` + `rest` is exact where `is_inexact` is 0. `sum` alone has the sign of a sum of zero.
struct ExactColumns {
  alignas(64) double sum[kExactColumns];
  alignas(64) double rest[kExactColumns];
  alignas(64) int64_t is_inexact[kExactColumns];
};

/// The loops for one instruction set. Arrays are dense.
struct ExactKernels {
  /// Writes the terms of `count` numbers as doubles, exact for float32 except for deviations, and rounded for float64.
  /// Returns `largest` of them. The other numbers are one where the stride is 0, and consecutive where it is 1. The
  /// elements `ahead` are needed soon.
  template <class T, class U>
  using Convert = int64_t (*)(const T* from, const U* others, int64_t others_stride, int64_t count, int64_t ahead,
                              double* to) noexcept;
  Convert<float, float> convert32[4];  // by ExactTerm
  Convert<double, double> convert64[5];
  Convert<float, double> deviation32;
  /// Returns the sum, if it is exact whatever the order: where the exponents of all numbers but zeros are so near to
  /// each other that no bit of a partial sum is lost. Returns NaN otherwise, and for zeros only. By whether the
  /// absolute values are added.
  double (*near32[2])(const float* from, int64_t count) noexcept;
  /// Returns the greatest of the bits of absolute values.
  int64_t (*largest)(const double* from, int64_t count, int64_t ahead) noexcept;
  /// Writes exact sums of the leading bits of all numbers: at level i the multiples of the last bit of magic[i] that
  /// are nearest to what is left of them. Returns whether nothing is left. By number of levels, from 1 on.
  bool (*extract[kExactLevels])(const double* from, int64_t count, const double* magic, double* sums) noexcept;
  /// Writes the sum of each column, as `near32`, and returns whether they are exact.
  bool (*near_columns32[2])(const float* const* rows, int64_t count, int64_t width, int64_t ahead,
                            double* sums) noexcept;
  /// As `extract`, for each column: level i of column j is sums[i * kExactColumns + j]. A sum of zeros is +0.
  bool (*extract_columns[kExactLevels])(const double* const* rows, int64_t count, int64_t width, const double* magic,
                                        double* sums) noexcept;
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
