// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "artifex_devices/base/dtype.h"

namespace artifex_devices {

enum class Reduction : uint8_t { kSum, kProduct, kMax, kMin };

/// "sum", "prod", "max" or "min". Throws InvalidArgument for another name.
Reduction reduction_from_name(std::string_view name);

/// Writes inputs[0] op inputs[1] op ... for elements [begin, end) of dense arrays, always in this order. The bits
/// depend neither on the processor nor on the division into ranges. Integers wrap; max and min give NaN where any input
/// has one. Up to eight inputs are read at a time, each as one long stream: a core reads as fast from them as from one
/// array. `stream`: the result bypasses the cache, for results far larger than that; others see it after
/// `stream_fence()` on this thread. At least one input; `out` overlaps none.
void combine(Reduction reduction, ArithmeticType type, std::span<const void* const> inputs, void* out, int64_t begin,
             int64_t end, bool stream) noexcept;

}  // namespace artifex_devices
