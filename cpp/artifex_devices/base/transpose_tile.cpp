// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/base/transpose_tile.h"

#include <cstring>
#include <utility>

namespace artifex_devices {
namespace {

/// A vector register of kWidth bytes that holds elements of type T (GCC's vector extension: it becomes the widest
/// registers that the function's target has).
template <class T, int kWidth>
struct Vector {
  typedef T Type __attribute__((vector_size(kWidth)));
};

/// Interleaves the lower (kHalf 0) or upper (kHalf 1) halves of two vectors: {a0, b0, a1, b1, ...}.
template <int kHalf, class V, int... kIndex>
[[gnu::always_inline]] inline void interleave(V& out, const V& a, const V& b, std::integer_sequence<int, kIndex...>) {
  constexpr int kCount = sizeof...(kIndex);
  out = __builtin_shufflevector(a, b, (kIndex / 2 + kIndex % 2 * kCount + kHalf * kCount / 2)...);
}

/// Transposes a square of kWidth / sizeof(T) rows in registers: log2(rows) rounds of interleaving row i with row
/// i + rows / 2.
template <class T, int kWidth>
[[gnu::always_inline]] inline void transpose_square(std::byte* destination, int64_t destination_stride,
                                                    const std::byte* source, int64_t row_stride) {
  using V = typename Vector<T, kWidth>::Type;
  constexpr int kCount = kWidth / static_cast<int>(sizeof(T));
  constexpr auto kIndices = std::make_integer_sequence<int, kCount>();
  V rows[kCount];
  V mixed[kCount];
#pragma GCC unroll 16
  for (int i = 0; i < kCount; ++i) __builtin_memcpy(&rows[i], source + i * row_stride, kWidth);
#pragma GCC unroll 4
  for (int round = 1; round < kCount; round *= 2) {
#pragma GCC unroll 8
    for (int i = 0; i < kCount / 2; ++i) {
      interleave<0>(mixed[2 * i], rows[i], rows[i + kCount / 2], kIndices);
      interleave<1>(mixed[2 * i + 1], rows[i], rows[i + kCount / 2], kIndices);
    }
#pragma GCC unroll 16
    for (int i = 0; i < kCount; ++i) rows[i] = mixed[i];
  }
#pragma GCC unroll 16
  for (int i = 0; i < kCount; ++i) __builtin_memcpy(destination + i * destination_stride, &rows[i], kWidth);
}

/// Squares where they fit, then the rest element by element.
template <class T, int kWidth>
[[gnu::always_inline]] inline void transpose(std::byte* destination, const std::byte* source, int64_t row_stride,
                                             int64_t rows, int64_t columns) {
  constexpr int64_t kUnit = sizeof(T);
  constexpr int64_t kCount = kWidth / kUnit;
  const int64_t whole_rows = rows - rows % kCount;
  const int64_t whole_columns = columns - columns % kCount;
  for (int64_t r = 0; r < whole_rows; r += kCount) {
    for (int64_t c = 0; c < whole_columns; c += kCount) {
      transpose_square<T, kWidth>(destination + (c * rows + r) * kUnit, rows * kUnit,
                                  source + r * row_stride + c * kUnit, row_stride);
    }
  }
  for (int64_t c = 0; c < columns; ++c) {
    std::byte* const to = destination + c * rows * kUnit;
    const std::byte* const from = source + c * kUnit;
    for (int64_t r = c < whole_columns ? whole_rows : 0; r < rows; ++r) {
      std::memcpy(to + r * kUnit, from + r * row_stride, kUnit);
    }
  }
}

using Transpose = void (*)(std::byte*, const std::byte*, int64_t, int64_t, int64_t);

template <class T>
void transpose_128(std::byte* d, const std::byte* s, int64_t row_stride, int64_t rows, int64_t columns) {
  transpose<T, 16>(d, s, row_stride, rows, columns);
}

#if defined(__x86_64__)

template <class T>
[[gnu::target("avx2")]] void transpose_256(std::byte* d, const std::byte* s, int64_t row_stride, int64_t rows,
                                           int64_t columns) {
  transpose<T, 32>(d, s, row_stride, rows, columns);
}

template <class T>
[[gnu::target("avx512f,avx512bw,avx512vl,prefer-vector-width=512")]] void transpose_512(std::byte* d,
                                                                                        const std::byte* s,
                                                                                        int64_t row_stride,
                                                                                        int64_t rows, int64_t columns) {
  transpose<T, 64>(d, s, row_stride, rows, columns);
}

template <class T>
Transpose best_transpose() noexcept {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) {
    return transpose_512<T>;
  }
  return __builtin_cpu_supports("avx2") ? transpose_256<T> : transpose_128<T>;
}

#else

template <class T>
Transpose best_transpose() noexcept {
  return transpose_128<T>;
}

#endif

/// Units that no register kernel knows; kUnit 0 means any.
template <int kUnit>
void transpose_units(std::byte* destination, const std::byte* source, int64_t row_stride, int64_t rows, int64_t columns,
                     int64_t any_unit) {
  const int64_t unit = kUnit > 0 ? kUnit : any_unit;
  for (int64_t c = 0; c < columns; ++c) {
    for (int64_t r = 0; r < rows; ++r) {
      std::memcpy(destination + (c * rows + r) * unit, source + r * row_stride + c * unit, static_cast<size_t>(unit));
    }
  }
}

// Chosen when the library is loaded: a guarded static could be in the making when another thread forks.
const Transpose transpose_4 = best_transpose<uint32_t>();
const Transpose transpose_8 = best_transpose<uint64_t>();

}  // namespace

void transpose_tile(std::byte* destination, const std::byte* source, int64_t row_stride, int64_t rows, int64_t columns,
                    int64_t unit) noexcept {
  switch (unit) {
    case 1:
      return transpose_128<uint8_t>(destination, source, row_stride, rows, columns);
    case 2:
      return transpose_128<uint16_t>(destination, source, row_stride, rows, columns);
    case 4:
      return transpose_4(destination, source, row_stride, rows, columns);
    case 8:
      return transpose_8(destination, source, row_stride, rows, columns);
    case 16:
      return transpose_units<16>(destination, source, row_stride, rows, columns, unit);
    default:
      return transpose_units<0>(destination, source, row_stride, rows, columns, unit);
  }
}

}  // namespace artifex_devices
