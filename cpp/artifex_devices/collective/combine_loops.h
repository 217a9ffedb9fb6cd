// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace artifex_devices {

/// out[i] = inputs[0][i] op inputs[1][i] op ... for i in [begin, end); as `combine` (combine.h), which chooses one.
using CombineLoop = void (*)(const void* const* inputs, int64_t count, void* out, int64_t begin, int64_t end,
                             bool stream) noexcept;

/// Of `outer` dense boxes of (reduced, inner) floats of 16 bits: inner totals each, as `fold`.
using FoldLoop = void (*)(const void* from, int64_t outer, int64_t reduced, int64_t inner, float* out) noexcept;
using WidenLoop = void (*)(const void* from, int64_t count, float* to) noexcept;
using NarrowLoop = void (*)(const float* from, int64_t count, void* to) noexcept;
using DivideLoop = void (*)(void* data, int64_t count, float by) noexcept;

/// The loops for one instruction set, by Reduction and then by ArithmeticType. float16 and bfloat16 also have the loops
/// of `halves.h`.
struct CombineLoops {
  CombineLoop of[4][12];
  FoldLoop fold[4][2];
  WidenLoop widen[2];
  NarrowLoop narrow[2];
  DivideLoop divide[2];
};

/// The loops for active_isa().
const CombineLoops& combine_loops() noexcept;

extern const CombineLoops combine_loops_baseline;
#if defined(__x86_64__)
extern const CombineLoops combine_loops_avx2;
extern const CombineLoops combine_loops_avx512;
#endif

}  // namespace artifex_devices
