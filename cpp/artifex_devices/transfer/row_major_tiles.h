// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "artifex_devices/array/storage.h"
#include "artifex_devices/base/shape.h"
#include "artifex_devices/partition/shard_domains.h"

namespace artifex_devices {

/// Whether the concatenated tiles are the elements of the whole array in row-major order, each tile beginning at tile
/// number times elements of the first tile. Example: (8, 4) cut into (2, 4) is; cut into (8, 2) is not; (2, 4) cut into
/// (1, 2) is.
inline bool tiles_are_row_major(const ShardDomains& domains) noexcept {
  const Dims& shape = domains.shape();
  const TileGrid& grid = domains.grid();
  int64_t last_cut = grid.parts().size() - 1;
  while (last_cut >= 0 && grid.parts(last_cut) == 1) --last_cut;
  for (int64_t d = 0; d < last_cut; ++d) {
    // Uneven cuts of two dimensions leave gaps in the tile numbers.
    const bool thin = domains.is_even() ? domains.shard_shape()[d] == 1 : shape[d] == 1 && grid.parts(d) == 1;
    if (!thin) return false;
  }
  return true;
}

/// The whole value in row-major order, if the memory of an array has it so: one buffer, or tiles that follow each other
/// in one slab without padding. Null otherwise. For a caller that has just allocated it or holds a buffer.
inline std::byte* row_major_run(const Storage& storage, const ShardDomains& domains) noexcept {
  int64_t stride = 0;
  std::byte* slab = storage.slab(&stride);
  if (!slab || domains.grid().tiles() == 1) return slab;
  if (!storage.sharding()->buffers().is_tile()) return nullptr;  // not all tiles are here
  return stride == storage.buffer_bytes(BufferId(0)) && tiles_are_row_major(domains) ? slab : nullptr;
}

}  // namespace artifex_devices
