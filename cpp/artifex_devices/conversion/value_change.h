// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "artifex_devices/base/dtype.h"

namespace artifex_devices {

/// One change of the values of an array: a cast, or a product that is rounded to the dtype of the values.
struct ValueChange {
  std::optional<DType> cast;
  double factor = 1;
  friend bool operator==(const ValueChange&, const ValueChange&) = default;
};

/// Returns whether `change_values` knows all dtypes: those that float32 contains, which are float32, float16, bfloat16
/// and the floating-point types of ml_dtypes with 8 bits or fewer, except float8_e8m0fnu.
bool can_change_values(DType dtype, const std::vector<ValueChange>& changes) noexcept;

/// Changes `count` dense elements of `dtype`, whose memory must not overlap the results. Casts round as `astype` of
/// NumPy and ml_dtypes does: to the nearest, and halfway to even. Products are computed in float32.
void change_values(DType dtype, const std::vector<ValueChange>& changes, int64_t count, const std::byte* from,
                   std::byte* to);

}  // namespace artifex_devices
