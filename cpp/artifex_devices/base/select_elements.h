// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace artifex_devices {

/// One of the two operands of select_elements: one element for each element of the result, or one for all.
struct SelectOperand {
  const void* data;
  bool is_one;
};

/// out[i] = condition[i] ? one[i] : other[i], for elements of 1, 2, 4, 8 or 16 bytes, whose bits do not change. A byte
/// of `condition` that is not 0 is true. No branch depends on it: all patterns take equally long. All arrays are dense,
/// elements are aligned to their size (16: to 8), `out` overlaps no input. `stream`: the result bypasses the cache and
/// is visible to others after `stream_fence()` on this thread. Returns false and does nothing for elements of another
/// size.
[[nodiscard]] bool select_elements(void* out, const uint8_t* condition, SelectOperand one, SelectOperand other,
                                   int64_t elements, int64_t itemsize, bool stream) noexcept;

}  // namespace artifex_devices
