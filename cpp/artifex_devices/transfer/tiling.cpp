// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/transfer/tiling.h"

#include <algorithm>

namespace artifex_devices {

std::optional<Tiling> Tiling::of(const Storage& storage, const ShardDomains& domains, const Layout* layout,
                                 int64_t itemsize) {
  int64_t stride = 0;
  std::byte* slab = storage.slab(&stride);
  if (!slab || !domains.is_even() || !storage.sharding()->buffers().is_tile()) return std::nullopt;
  Tiling tiling;
  tiling.data = slab;
  tiling.strides = buffer_strides(layout, domains.shard_shape(), itemsize);
  tiling.parts = domains.grid().parts();
  tiling.tile_stride = stride;
  return tiling;
}

bool parts_divide(const TileGrid& a, const TileGrid& b, int64_t rank) noexcept {
  for (int64_t d = 0; d < rank; ++d) {
    if (std::max(a.parts(d), b.parts(d)) % std::min(a.parts(d), b.parts(d)) != 0) return false;
  }
  return true;
}

StridedCopy tiling_copy(const Tiling& to, const Tiling& from, const Dims& shape, int64_t itemsize) {
  // Made from the last dimension on, since tile numbers count in row-major order; StridedCopy takes any order.
  Dims sizes;
  Dims to_strides;
  Dims from_strides;
  int64_t to_tile = to.tile_stride;
  int64_t from_tile = from.tile_stride;
  for (int64_t d = shape.size() - 1; d >= 0; --d) {
    const int64_t to_parts = to.parts_of(d);
    const int64_t from_parts = from.parts_of(d);
    const int64_t fine = std::max(to_parts, from_parts);
    const int64_t coarse = std::min(to_parts, from_parts);
    const int64_t ratio = fine / coarse;
    const int64_t run = shape[d] / fine;
    const auto add = [&](int64_t size, int64_t to_stride, int64_t from_stride) {
      if (size == 1) return;
      sizes.push_back(size);
      to_strides.push_back(to_stride);
      from_strides.push_back(from_stride);
    };
    add(run, to.strides[d], from.strides[d]);
    add(ratio, to_parts == fine ? to_tile : run * to.strides[d],
        from_parts == fine ? from_tile : run * from.strides[d]);
    add(coarse, to_parts == fine ? ratio * to_tile : to_tile, from_parts == fine ? ratio * from_tile : from_tile);
    to_tile *= to_parts;
    from_tile *= from_parts;
  }
  return {to.data, to_strides, from.data, from_strides, sizes, itemsize};
}

}  // namespace artifex_devices
