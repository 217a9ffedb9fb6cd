// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/base/byte_count.h"

#include <algorithm>

#include "artifex_devices/base/throw_error.h"

namespace artifex_devices {

std::optional<int64_t> dense_bytes(const Dims& shape, int64_t itemsize) noexcept {
  std::optional<int64_t> bytes = itemsize;
  bool empty = false;
  for (const int64_t size : shape) {
    empty = empty || size == 0;
    if (size != 0) bytes = checked_mul(*bytes, size);
    if (!bytes) return bytes;
  }
  return empty ? 0 : bytes;
}

int64_t checked_bytes(const Dims& shape, DType dtype, std::string_view operation) {
  checked_product(shape, operation);
  const auto bytes = dense_bytes(shape, itemsize(dtype));
  if (!bytes) {
    throw_error("{}: shape {} of {} is more bytes than fit 63 bits{}; use smaller sizes", operation, to_string(shape),
                name(dtype), note_on_zeros(shape));
  }
  return *bytes;
}

std::string_view note_on_zeros(const Dims& shape) noexcept {
  return std::ranges::find(shape, 0) == shape.end() ? "" : ", counting sizes of 0 as 1";
}

}  // namespace artifex_devices
