// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/collective/halves.h"

#include "artifex_devices/collective/combine_loops.h"

namespace artifex_devices {
namespace {

int format_of(ArithmeticType type) noexcept { return type == ArithmeticType::kFloat16 ? 0 : 1; }

}  // namespace

void widen(ArithmeticType type, const void* from, int64_t count, float* to) noexcept {
  combine_loops().widen[format_of(type)](from, count, to);
}

void narrow(ArithmeticType type, const float* from, int64_t count, void* to) noexcept {
  combine_loops().narrow[format_of(type)](from, count, to);
}

void divide(ArithmeticType type, void* data, int64_t count, float by) noexcept {
  combine_loops().divide[format_of(type)](data, count, by);
}

void fold(Reduction reduction, ArithmeticType type, const void* from, int64_t outer, int64_t reduced, int64_t inner,
          float* out) noexcept {
  combine_loops().fold[static_cast<int>(reduction)][format_of(type)](from, outer, reduced, inner, out);
}

}  // namespace artifex_devices
