// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "artifex_devices/base/dtype.h"
#include "artifex_devices/base/index_domain.h"
#include "artifex_devices/base/shape.h"
#include "artifex_devices/conversion/value_change.h"

namespace artifex_devices {

/// One loop of a region: `size` elements, `step` apart along a dimension of the target, and `stride` apart among the
/// row-major elements of the source.
struct RegionLoop {
  int64_t axis = 0;
  int64_t step = 1;
  int64_t size = 1;
  int64_t stride = 1;
  friend bool operator==(const RegionLoop&, const RegionLoop&) = default;
};

/// Elements of a target array and the elements of one source array that they are copied from.
/// Example: the transpose of a source of shape (2, 3) is {origin (0, 0), loops {{0, 1, 3, 1}, {1, 1, 2, 3}}}.
struct Region {
  static constexpr int64_t kConstant = -1;  // as `source`: all elements are `constant`

  Dims origin;                    // first element in the target
  std::vector<RegionLoop> loops;  // of 2 elements or more; by axis, and of one axis by descending steps, each of which
                                  // is larger than the distance that the loops after it cover
  int64_t source = 0;             // index in the list of sources
  int64_t offset = 0;             // first element in the source
  std::vector<ValueChange> changes = {};  // in their order
  std::string constant = {};              // bytes of one element
  DType dtype = DType::kFloat32;          // of the source or the constant, before the changes

  int64_t volume() const noexcept;
  friend bool operator==(const Region&, const Region&) = default;
};

/// Largest number of regions of a conversion.
inline constexpr size_t kMaxRegions = size_t{1} << 20;

/// A gap between elements of a file that is read too, because a seek over it takes as long.
inline constexpr int64_t kReadThroughBytes = 64 << 10;

/// Inserts a value before position `at`, or removes the one there.
void insert_value(Dims* dims, int64_t at, int64_t value);
void erase_value(Dims* dims, int64_t at);

/// The region that copies a whole array.
Region whole_region(int64_t source, const Dims& shape, DType dtype);

/// The elements of a region with indices [begin, begin + count) of its loop number `k`.
Region sliced(const Region& region, size_t k, int64_t begin, int64_t count);

/// Appends the part of a region whose indices of `axis` are in [begin, end), as one region or a few.
void append_restricted(const Region& region, int64_t axis, int64_t begin, int64_t end, std::vector<Region>* into);

/// The parts of regions that are in a box of the target.
std::vector<Region> regions_in(const std::vector<Region>& regions, const IndexDomain& box);

/// Appends a region after dimension `axis` has become two, the second of size `inner`. One region, unless the blocks
/// of `inner` divide the elements of the region unevenly. Stops once there are more than kMaxRegions.
void append_unflattened(Region region, int64_t axis, int64_t inner, std::vector<Region>* into);

/// Makes one dimension of `axis` and the next, whose size is `inner`.
void flatten(Region* region, int64_t axis, int64_t inner);

/// Dimension d becomes dimension axes[d] of the old.
void transpose(Region* region, const Dims& axes);

/// Adds a dimension at `axis`, in which the region has one index.
void insert_axis(Region* region, int64_t axis, int64_t index);

/// Removes a dimension in which the region has one index.
void remove_axis(Region* region, int64_t axis);

}  // namespace artifex_devices
