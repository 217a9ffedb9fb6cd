// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace artifex_devices {

/// out[i] = inputs[0][i] op inputs[1][i] op ... for i in [begin, end); as `combine` (combine.h), which chooses one.
using CombineLoop = void (*)(const void* const* inputs, int64_t count, void* out, int64_t begin, int64_t end,
                             bool stream) noexcept;

/// The loops for one instruction set: by Reduction, then by Lane.
struct CombineLoops {
  CombineLoop of[4][10];
};

extern const CombineLoops combine_loops_baseline;
#if defined(__x86_64__)
extern const CombineLoops combine_loops_avx2;
extern const CombineLoops combine_loops_avx512;
#endif

}  // namespace artifex_devices
