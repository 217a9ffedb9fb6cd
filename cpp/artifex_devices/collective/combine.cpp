// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/collective/combine.h"

#include "artifex_devices/base/isa.h"
#include "artifex_devices/collective/combine_loops.h"

namespace artifex_devices {

const CombineLoops& combine_loops() noexcept {
  return *ARTIFEX_VARIANT(const CombineLoops*, active_isa(), &combine_loops);
}

void combine(Reduction reduction, ArithmeticType type, std::span<const void* const> inputs, void* out, int64_t begin,
             int64_t end, bool stream) noexcept {
  combine_loops().of[static_cast<int>(reduction)][static_cast<int>(type)](
      inputs.data(), static_cast<int64_t>(inputs.size()), out, begin, end, stream);
}

}  // namespace artifex_devices
