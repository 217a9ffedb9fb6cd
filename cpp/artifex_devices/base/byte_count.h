// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "artifex_devices/base/dtype.h"
#include "artifex_devices/base/shape.h"

namespace artifex_devices {

/// Returns the bytes of a dense array; sizes must not be negative. Returns nothing if the product does not fit 63 bits
/// when sizes of 0 count as 1: strides of empty arrays must fit too, and NumPy rejects such shapes.
/// Example: dense_bytes({2, 3}, 4) is 24, dense_bytes({0, 5}, 4) is 0, dense_bytes({0, 2^40, 2^40}, 4) is nothing.
std::optional<int64_t> dense_bytes(const Dims& shape, int64_t itemsize) noexcept;

/// The same. Throws InvalidArgument, naming `operation`, if the bytes do not fit or a size is negative.
int64_t checked_bytes(const Dims& shape, DType dtype, std::string_view operation);

/// Returns the end of an error message about a shape whose bytes do not fit: explains why an empty array has any.
std::string_view note_on_zeros(const Dims& shape) noexcept;

}  // namespace artifex_devices
