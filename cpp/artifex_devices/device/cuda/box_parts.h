// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "artifex_devices/base/strided_copy.h"

namespace artifex_devices::cuda {

using Box = StridedCopy::Box;

inline int64_t bytes_of(const Box& box) noexcept {
  int64_t bytes = box.unit;
  for (const int64_t size : box.shape) bytes *= size;
  return bytes;
}

inline StridedCopy copy_of(const Box& box) {
  return {box.to, box.to_strides, box.from, box.from_strides, box.shape, box.unit};
}

/// The box without its first dimension, at the first index of it.
inline Box without_first(const Box& box) {
  Box inner{box.to, box.from, {}, {}, {}, box.unit};
  for (int64_t d = 1; d < box.shape.size(); ++d) {
    inner.shape.push_back(box.shape[d]);
    inner.to_strides.push_back(box.to_strides[d]);
    inner.from_strides.push_back(box.from_strides[d]);
  }
  return inner;
}

/// The dimensions by descending strides of one side.
inline Box sorted(const Box& box, const Dims& by) {
  std::vector<int64_t> order(static_cast<size_t>(box.shape.size()));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](int64_t a, int64_t b) { return std::abs(by[a]) > std::abs(by[b]); });
  Box result{box.to, box.from, {}, {}, {}, box.unit};
  for (const int64_t d : order) {
    result.shape.push_back(box.shape[d]);
    result.to_strides.push_back(box.to_strides[d]);
    result.from_strides.push_back(box.from_strides[d]);
  }
  return result;
}

/// Calls f for parts of at most `most` bytes, front to back.
template <class F>
void for_parts(const Box& box, int64_t most, const F& f) {
  const int64_t bytes = bytes_of(box);
  if (bytes <= most) return f(box);
  if (box.shape.empty()) {
    for (int64_t at = 0; at < box.unit; at += most) {
      f(Box{box.to + at, box.from + at, {}, {}, {}, std::min(most, box.unit - at)});
    }
    return;
  }
  const int64_t row = bytes / box.shape[0];
  const int64_t rows = std::max<int64_t>(most / row, 1);
  for (int64_t i = 0; i < box.shape[0]; i += rows) {
    Box part = box;
    part.to += i * box.to_strides[0];
    part.from += i * box.from_strides[0];
    part.shape[0] = std::min(rows, box.shape[0] - i);
    if (part.shape[0] > 1 || row <= most) {
      f(part);
    } else {
      for_parts(without_first(part), most, f);
    }
  }
}

}  // namespace artifex_devices::cuda
