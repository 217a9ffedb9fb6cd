// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/planner/link_loads.h"

#include <algorithm>
#include <numeric>

#include "artifex_devices/base/error.h"

namespace artifex_devices {

LinkLoads::LinkLoads(const std::vector<int>& dims, const std::vector<bool>& wraps) : dims_(dims), wraps_(wraps) {
  if (dims.size() != wraps.size()) {
    fail("LinkLoads: dims and wraps differ in length; expected one of each for an axis, got {} and {}", dims.size(),
         wraps.size());
  }
  for (size_t axis = 0; axis < dims_.size(); ++axis) {
    if (dims_[axis] < 1 || chips_ * dims_[axis] > (int64_t{1} << 24)) {
      fail("LinkLoads: axis {} has {} chips; expected 1 or more, and at most 2**24 chips in all", axis, dims_[axis]);
    }
    chips_ *= dims_[axis];
    wraps_[axis] = wraps_[axis] && dims_[axis] > 2;
  }
  loads_.assign(dims_.size() * static_cast<size_t>(chips_) * 2, 0.0);
}

void LinkLoads::add(int64_t from, int64_t to, double bytes) {
  if (std::min(from, to) < 0 || std::max(from, to) >= chips_) {
    fail("LinkLoads: a message goes from chip {} to {}; expected chips 0 to {}", from, to, chips_ - 1);
  }
  int64_t at = from;
  int64_t stride = 1;
  int64_t path = 0;
  for (size_t axis = 0; axis < dims_.size(); stride *= dims_[axis], ++axis) {
    const int64_t size = dims_[axis];
    const int64_t begin = at / stride % size;
    const int64_t end = to / stride % size;
    if (begin == end) continue;
    const int64_t base = at - begin * stride;
    const auto walk = [&](bool forward, int64_t steps, double part) {
      int64_t place = begin;
      for (int64_t i = 0; i < steps; ++i) {
        load(axis, base + place * stride, forward) += part;
        place = (place + (forward ? 1 : size - 1)) % size;
      }
    };
    const int64_t ahead = (end - begin + size) % size;
    if (!wraps_[axis]) {
      walk(end > begin, std::abs(end - begin), bytes);
      path += std::abs(end - begin);
    } else if (2 * ahead == size) {
      walk(true, ahead, bytes / 2);
      walk(false, ahead, bytes / 2);
      path += ahead;
    } else {
      const int64_t steps = std::min(ahead, size - ahead);
      walk(2 * ahead < size, steps, bytes);
      path += steps;
    }
    at = base + end * stride;
  }
  longest_path_ = std::max(longest_path_, path);
}

double LinkLoads::most_bytes() const noexcept { return loads_.empty() ? 0 : *std::ranges::max_element(loads_); }

double LinkLoads::total_bytes() const noexcept { return std::accumulate(loads_.begin(), loads_.end(), 0.0); }

}  // namespace artifex_devices
