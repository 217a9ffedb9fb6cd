// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace artifex_devices {

/// One of the two operands of `select`: an element for each of the result, or one for all.
struct SelectOperand {
  const void* data;
  bool is_one;
};

/// out[i] = condition[i] ? one[i] : other[i], for elements of 1, 2, 4, 8 or 16 bytes, whose bits are copied as they
/// are. A byte of `condition` that is not 0 is true. No branch depends on it: any pattern takes as long as any other.
/// All are dense, elements lie at multiples of their size (16: of 8), `out` overlaps nothing else. `stream`: the result
/// bypasses the cache; then others see it after `stream_fence()` on this thread. False, and nothing is done, for
/// elements of another size.
[[nodiscard]] bool select_elements(void* out, const uint8_t* condition, SelectOperand one, SelectOperand other,
                                   int64_t elements, int64_t itemsize, bool stream) noexcept;

}  // namespace artifex_devices
