// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace artifex_devices {

/// Writes the transpose of a tile of `rows` x `columns` units of `unit` bytes, densely: destination[c][r] =
/// source[r][c], where source rows are `row_stride` bytes apart (of any sign) and the units of a source row are dense.
/// Neither side needs an alignment. For tiles that fit the first-level cache. Prefetches the tile `ahead` bytes from
/// the source (0: none); any address is allowed.
/// Example: rows {1, 2, 3} and {4, 5, 6} become {1, 4}, {2, 5}, {3, 6}.
void transpose_tile(std::byte* destination, const std::byte* source, int64_t row_stride, int64_t rows, int64_t columns,
                    int64_t unit, int64_t ahead = 0) noexcept;

}  // namespace artifex_devices
