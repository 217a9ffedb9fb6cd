// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "artifex_devices/array/array.h"
#include "artifex_devices/base/strided_copy.h"

namespace artifex_devices {

/// A value in memory in equal tiles at equal distances: a slab, one buffer, or a host array (one tile).
/// Strides are in bytes.
struct Tiling {
  std::byte* data = nullptr;
  Dims strides;             // within a tile
  Dims parts;               // tiles along each dimension; later dimensions have one
  int64_t tile_stride = 0;  // from a tile to the next one in row-major order

  /// Nothing if the buffers are not in one slab, differ in size, or are not all in this process.
  /// `layout` of the tiles (null: row-major).
  static std::optional<Tiling> of(const Storage& storage, const ShardDomains& domains, const Layout* layout,
                                  int64_t itemsize);

  int64_t parts_of(int64_t dimension) const noexcept { return dimension < parts.size() ? parts[dimension] : 1; }
};

/// Whether in each dimension one number of parts is a multiple of the other.
bool parts_divide(const TileGrid& a, const TileGrid& b, int64_t rank) noexcept;

/// All of a value of `shape`, with elements, from one tiling to another whose parts divide it or the other way round:
/// one copy is enough, because an element's place is affine in (coarse tile, fine tile, index) on both sides. Example:
/// (8, 4) from 2 x 1 tiles to 4 x 2 tiles is a copy of a box of shape (2, 2, 2, 2, 2).
StridedCopy tiling_copy(const Tiling& to, const Tiling& from, const Dims& shape, int64_t itemsize);

}  // namespace artifex_devices
