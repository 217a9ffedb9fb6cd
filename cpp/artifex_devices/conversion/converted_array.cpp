// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/conversion/converted_array.h"

#include <utility>

namespace artifex_devices {
namespace {

// Length of a part in each group, and where it begins there.
struct Chunk {
  Chunk(const Dims& sizes, int64_t groups, int64_t part) : length(sizes[part] / groups) {
    for (int64_t i = 0; i < part; ++i) begin += sizes[i] / groups;
  }
  int64_t length;
  int64_t begin = 0;
};

}  // namespace

ConvertedArray transposed(const ConvertedArray& array, const Dims& axes) {
  ConvertedArray made = array;
  for (int64_t d = 0; d < axes.size(); ++d) made.shape[d] = array.shape[axes[d]];
  for (Region& region : made.regions) transpose(&region, axes);
  return made;
}

ConvertedArray stacked(const std::vector<const ConvertedArray*>& arrays, int64_t position) {
  const auto count = static_cast<int64_t>(arrays.size());
  ConvertedArray made{arrays.front()->shape, arrays.front()->dtype, {}};
  insert_value(&made.shape, position, count);
  for (int64_t i = 0; i < count; ++i) {
    for (const Region& region : arrays[static_cast<size_t>(i)]->regions) {
      made.regions.push_back(region);
      insert_axis(&made.regions.back(), position, i);
    }
  }
  return made;
}

ConvertedArray layer_of(const ConvertedArray& array, int64_t position, int64_t index) {
  ConvertedArray made{array.shape, array.dtype, {}};
  erase_value(&made.shape, position);
  for (const Region& region : array.regions) append_restricted(region, position, index, index + 1, &made.regions);
  for (Region& region : made.regions) remove_axis(&region, position);
  return made;
}

ConvertedArray split_part(const ConvertedArray& array, int64_t axis, const Dims& sizes, int64_t groups, int64_t part) {
  const ConvertedArray grouped = unflattened(array, axis, {groups, array.shape[axis] / groups});
  const Chunk chunk(sizes, groups, part);
  ConvertedArray made{grouped.shape, array.dtype, {}};
  made.shape[axis + 1] = chunk.length;
  for (const Region& region : grouped.regions) {
    append_restricted(region, axis + 1, chunk.begin, chunk.begin + chunk.length, &made.regions);
  }
  for (Region& region : made.regions) region.origin[axis + 1] -= chunk.begin;
  return flattened(std::move(made), axis, 2);
}

ConvertedArray joined(const std::vector<const ConvertedArray*>& parts, int64_t axis, const Dims& sizes,
                      int64_t groups) {
  ConvertedArray made{parts.front()->shape, parts.front()->dtype, {}};
  int64_t total = 0;
  for (const int64_t size : sizes) total += size;
  made.shape[axis] = groups;
  insert_value(&made.shape, axis + 1, total / groups);
  for (int64_t part = 0; part < sizes.size(); ++part) {
    const Chunk chunk(sizes, groups, part);
    ConvertedArray grouped = unflattened(*parts[static_cast<size_t>(part)], axis, {groups, chunk.length});
    for (Region& region : grouped.regions) {
      region.origin[axis + 1] += chunk.begin;
      made.regions.push_back(std::move(region));
    }
  }
  return flattened(std::move(made), axis, 2);
}

ConvertedArray unflattened(ConvertedArray array, int64_t axis, const Dims& sizes) {
  for (int64_t d = 0; d + 1 < sizes.size(); ++d, ++axis) {
    const int64_t inner = array.shape[axis] / sizes[d];
    std::vector<Region> regions;
    for (Region& region : array.regions) append_unflattened(std::move(region), axis, inner, &regions);
    array.regions = std::move(regions);
    array.shape[axis] = sizes[d];
    insert_value(&array.shape, axis + 1, inner);
  }
  return array;
}

ConvertedArray flattened(ConvertedArray array, int64_t axis, int64_t count) {
  for (int64_t d = count - 2; d >= 0; --d) {
    const int64_t inner = array.shape[axis + d + 1];
    for (Region& region : array.regions) flatten(&region, axis + d, inner);
    array.shape[axis + d] *= inner;
    erase_value(&array.shape, axis + d + 1);
  }
  return array;
}

}  // namespace artifex_devices
