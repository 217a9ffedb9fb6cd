// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/collective/combine.h"

#include "artifex_devices/base/isa.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/collective/combine_loops.h"

namespace artifex_devices {

Reduction reduction_from_name(std::string_view name) {
  if (name == "sum") return Reduction::kSum;
  if (name == "prod") return Reduction::kProduct;
  if (name == "max") return Reduction::kMax;
  if (name == "min") return Reduction::kMin;
  throw_error("all_reduce: {:?} is not a reduction; expected sum, prod, max or min", name);
}

const CombineLoops& combine_loops() noexcept {
  return *ARTIFEX_VARIANT(const CombineLoops*, active_isa(), &combine_loops);
}

void combine(Reduction reduction, ArithmeticType type, std::span<const void* const> inputs, void* out, int64_t begin,
             int64_t end, bool stream) noexcept {
  combine_loops().of[static_cast<int>(reduction)][static_cast<int>(type)](
      inputs.data(), static_cast<int64_t>(inputs.size()), out, begin, end, stream);
}

}  // namespace artifex_devices
