// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace artifex_devices {

/// What is added up or multiplied: elements, absolute values or squares.
enum class TotalKind : uint8_t { kSum, kProduct, kAbsolute, kSquares };

/// A box of shape (outer, reduced, inner) whose middle dimension is reduced. Elements along `inner` are adjacent, the
/// strides of the others are numbers of elements. No size is 0.
struct TotalBox {
  int64_t outer = 1;
  int64_t reduced = 1;
  int64_t inner = 1;
  int64_t outer_stride = 0;
  int64_t reduced_stride = 0;
};

/// Writes the totals, which are dense of shape (outer, inner). The order of operations depends on the sizes only: the
/// bits are the same on every processor.
using TotalLoop = void (*)(const void* from, const TotalBox& box, void* out) noexcept;

/// Writes means, what is missing from them, and sums of squared differences (moment_join.h), each of shape (outer,
/// inner) and `apart` numbers behind the one before.
using MomentLoop = void (*)(const void* from, const TotalBox& box, double* means, int64_t apart) noexcept;

/// The loops for one instruction set, by TotalKind and then by ArithmeticType, without the floats of 16 bits. Null
/// where there is none: products are of numbers of 32 and 64 bits, absolute values and squares of floats.
struct TotalLoops {
  TotalLoop of[4][10];      // totals of integers are 64-bit integers, which wrap; those of floats are float64
  TotalLoop as_float64[2];  // sums of int64 and uint64 in float64
  MomentLoop moments[2];    // of float32 and float64
};

extern const TotalLoops total_loops_baseline;
#if defined(__x86_64__)
extern const TotalLoops total_loops_avx2;
extern const TotalLoops total_loops_avx512;
#endif

}  // namespace artifex_devices
