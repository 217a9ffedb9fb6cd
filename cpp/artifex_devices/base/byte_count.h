// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "artifex_devices/base/dtype.h"
#include "artifex_devices/base/shape.h"

namespace artifex_devices {

/// Bytes of a dense array of sizes that are not negative. Nothing where they do not fit 63 bits with each size of 0
/// taken as 1: strides of empty arrays must fit too, and NumPy refuses such shapes.
/// Example: dense_bytes({2, 3}, 4) is 24, dense_bytes({0, 5}, 4) is 0, dense_bytes({0, 2^40, 2^40}, 4) is nothing.
std::optional<int64_t> dense_bytes(const Dims& shape, int64_t itemsize) noexcept;

/// The same. Throws InvalidArgument, naming `operation`, where there is nothing or a size is negative.
int64_t checked_bytes(const Dims& shape, DType dtype, std::string_view operation);

/// Ends what a message says of a shape whose bytes do not fit: why an empty one has any.
std::string_view note_on_zeros(const Dims& shape) noexcept;

}  // namespace artifex_devices
