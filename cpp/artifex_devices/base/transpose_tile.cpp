// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/base/transpose_tile.h"

#include <cstring>

#include "artifex_devices/base/copy_kernels.h"

namespace artifex_devices {

void transpose_tile(std::byte* destination, const std::byte* source, int64_t row_stride, int64_t rows, int64_t columns,
                    int64_t unit, int64_t ahead) noexcept {
  if (unit == 1 || unit == 2 || unit == 4 || unit == 8 || unit == 16) {
    return copy_kernels().transpose(destination, source, row_stride, rows, columns, unit, ahead);
  }
  for (int64_t c = 0; c < columns; ++c) {
    for (int64_t r = 0; r < rows; ++r) {
      std::memcpy(destination + (c * rows + r) * unit, source + r * row_stride + c * unit, static_cast<size_t>(unit));
    }
  }
}

}  // namespace artifex_devices
