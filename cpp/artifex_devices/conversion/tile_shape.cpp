// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/conversion/tile_shape.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "artifex_devices/base/dtype.h"
#include "artifex_devices/conversion/region.h"

namespace artifex_devices {
namespace {

// Bytes of the source that a disk reads for a region: a short gap between elements is read too, a seek over a longer
// one costs as much as kReadThroughBytes.
int64_t bytes_moved(Region region) {
  std::ranges::sort(region.loops, {}, &RegionLoop::stride);
  int64_t span = itemsize(region.dtype);
  int64_t runs = 1;
  for (const RegionLoop& loop : region.loops) {
    const int64_t stride = loop.stride * itemsize(region.dtype);
    if (stride - span >= kReadThroughBytes) {
      runs *= loop.size;
    } else {
      span += (loop.size - 1) * stride;
    }
  }
  return runs * (span + kReadThroughBytes);
}

// Bytes that are read for each byte that a box of the target needs.
double cost_of(const PlannedArray& target, const IndexDomain& box) {
  double needed = 0;
  double moved = 0;
  for (Region& region : regions_in(target.regions, box)) {
    if (region.source == Region::kConstant) continue;
    needed += static_cast<double>(region.volume() * itemsize(region.dtype));
    moved += static_cast<double>(bytes_moved(std::move(region)));
  }
  return needed > 0 ? moved / needed : 0;
}

}  // namespace

std::optional<Dims> tile_shape(const PlannedArray& target, const IndexDomain& box, const Dims& slab) {
  IndexDomain tile = box;
  const auto cost_of_tile = [&] {
    int64_t run = itemsize(target.type.dtype);  // of the scratch file, which one read of a slab takes from a tile
    for (int64_t d = 0; d < box.rank(); ++d) run *= std::min(slab[d], tile.shape[d]);
    return cost_of(target, tile) + static_cast<double>(kReadThroughBytes) / static_cast<double>(run);
  };
  const int64_t most = IndexDomain{box.origin, slab}.volume();
  while (tile.volume() > most) {
    std::vector<std::pair<double, int64_t>> costs;  // after the division of each dimension
    for (int64_t d = 0; d < box.rank(); ++d) {
      const int64_t size = tile.shape[d];
      if (size == 1) continue;
      tile.shape[d] = (size + 1) / 2;
      costs.emplace_back(cost_of_tile(), d);
      tile.shape[d] = size;
    }
    const int64_t divided = std::ranges::min(costs).second;
    tile.shape[divided] = (tile.shape[divided] + 1) / 2;
  }
  constexpr double kScratchPasses = 2;  // the tiles are written and read once more
  if (cost_of(target, {box.origin, slab}) <= cost_of_tile() + kScratchPasses) return std::nullopt;
  return tile.shape;
}

}  // namespace artifex_devices
