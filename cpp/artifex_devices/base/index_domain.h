// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <optional>

#include "artifex_devices/base/shape.h"

namespace artifex_devices {

/// A box of indices: [origin[d], origin[d] + shape[d]) in each dimension d, major to minor. Sizes may be 0.
struct IndexDomain {
  Dims origin;
  Dims shape;

  int64_t rank() const noexcept { return shape.size(); }
  /// Number of elements. Cannot overflow for the shape of a checked array.
  int64_t volume() const noexcept {
    if (std::ranges::find(shape, 0) != shape.end()) return 0;
    int64_t product = 1;
    for (const int64_t size : shape) product *= size;
    return product;
  }
  friend bool operator==(const IndexDomain&, const IndexDomain&) = default;
};

/// Returns the intersection of two boxes of equal rank, or nothing if it is empty.
/// Example: [2, 6) and [4, 9) share [4, 6).
inline std::optional<IndexDomain> intersect(const IndexDomain& a, const IndexDomain& b) {
  IndexDomain common{a.origin, a.shape};
  for (int64_t d = 0; d < a.rank(); ++d) {
    const int64_t begin = std::max(a.origin[d], b.origin[d]);
    const int64_t end = std::min(a.origin[d] + a.shape[d], b.origin[d] + b.shape[d]);
    if (end <= begin) return std::nullopt;
    common.origin[d] = begin;
    common.shape[d] = end - begin;
  }
  return common;
}

}  // namespace artifex_devices
