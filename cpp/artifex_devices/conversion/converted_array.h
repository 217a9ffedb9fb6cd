// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "artifex_devices/base/dtype.h"
#include "artifex_devices/base/shape.h"
#include "artifex_devices/conversion/region.h"

namespace artifex_devices {

/// An array between two rules, as regions of the sources.
struct ConvertedArray {
  Dims shape;
  DType dtype = DType::kFloat32;
  std::vector<Region> regions;  // disjoint, and together the array
  int64_t rule = -1;            // that created it; -1 for an array of the source
};

/// Dimension d of the result is dimension axes[d].
ConvertedArray transposed(const ConvertedArray& array, const Dims& axes);

/// Arrays of one shape, one behind the other along a new dimension `position`.
ConvertedArray stacked(const std::vector<const ConvertedArray*>& arrays, int64_t position);

/// The array at `index` of dimension `position`, without that dimension.
ConvertedArray layer_of(const ConvertedArray& array, int64_t position, int64_t index);

/// Part `part` of a dimension that consists of `groups` groups, each of which has sizes[i] / groups elements of each
/// part i. Example: sizes (4, 2) in 2 groups: elements 0, 1, 3, 4 are part 0, and elements 2, 5 part 1.
ConvertedArray split_part(const ConvertedArray& array, int64_t axis, const Dims& sizes, int64_t groups, int64_t part);

/// The inverse.
ConvertedArray joined(const std::vector<const ConvertedArray*>& parts, int64_t axis, const Dims& sizes, int64_t groups);

/// Dimension `axis` as several dimensions, whose product is its size.
ConvertedArray unflattened(ConvertedArray array, int64_t axis, const Dims& sizes);

/// `count` dimensions from `axis` on as one.
ConvertedArray flattened(ConvertedArray array, int64_t axis, int64_t count);

}  // namespace artifex_devices
