// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "artifex_devices/base/strided_copy.h"

namespace artifex_devices::cuda {

using LoopNest = StridedCopy::LoopNest;

inline int64_t bytes_of(const LoopNest& nest) noexcept {
  int64_t bytes = nest.unit;
  for (const int64_t size : nest.shape) bytes *= size;
  return bytes;
}

inline StridedCopy copy_of(const LoopNest& nest) {
  return {nest.to, nest.to_strides, nest.from, nest.from_strides, nest.shape, nest.unit};
}

/// The loop nest without its first dimension, at the first index of it.
inline LoopNest without_first(const LoopNest& nest) {
  LoopNest inner{nest.to, nest.from, {}, {}, {}, nest.unit};
  for (int64_t d = 1; d < nest.shape.size(); ++d) {
    inner.shape.push_back(nest.shape[d]);
    inner.to_strides.push_back(nest.to_strides[d]);
    inner.from_strides.push_back(nest.from_strides[d]);
  }
  return inner;
}

/// The dimensions by descending strides of one side.
inline LoopNest sorted(const LoopNest& nest, const Dims& by) {
  std::vector<int64_t> order(static_cast<size_t>(nest.shape.size()));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](int64_t a, int64_t b) { return std::abs(by[a]) > std::abs(by[b]); });
  LoopNest result{nest.to, nest.from, {}, {}, {}, nest.unit};
  for (const int64_t d : order) {
    result.shape.push_back(nest.shape[d]);
    result.to_strides.push_back(nest.to_strides[d]);
    result.from_strides.push_back(nest.from_strides[d]);
  }
  return result;
}

/// Calls f for parts of at most `most` bytes, front to back.
template <class F>
void for_parts(const LoopNest& nest, int64_t most, const F& f) {
  const int64_t bytes = bytes_of(nest);
  if (bytes <= most) return f(nest);
  if (nest.shape.empty()) {
    for (int64_t at = 0; at < nest.unit; at += most) {
      f(LoopNest{nest.to + at, nest.from + at, {}, {}, {}, std::min(most, nest.unit - at)});
    }
    return;
  }
  const int64_t row = bytes / nest.shape[0];
  const int64_t rows = std::max<int64_t>(most / row, 1);
  for (int64_t i = 0; i < nest.shape[0]; i += rows) {
    LoopNest part = nest;
    part.to += i * nest.to_strides[0];
    part.from += i * nest.from_strides[0];
    part.shape[0] = std::min(rows, nest.shape[0] - i);
    if (part.shape[0] > 1 || row <= most) {
      f(part);
    } else {
      for_parts(without_first(part), most, f);
    }
  }
}

}  // namespace artifex_devices::cuda
