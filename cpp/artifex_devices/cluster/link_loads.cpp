// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/cluster/link_loads.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "artifex_devices/base/throw_error.h"

namespace artifex_devices {

LinkLoads::LinkLoads(std::vector<int64_t> dims, std::vector<bool> wraps)
    : dims_(std::move(dims)), wraps_(std::move(wraps)) {
  constexpr int64_t kMostChips = int64_t{1} << 24;
  if (dims_.size() != wraps_.size()) {
    throw_error("LinkLoads: dims and wraps differ in length; expected one of each for an axis, got {} and {}",
                dims_.size(), wraps_.size());
  }
  for (size_t axis = 0; axis < dims_.size(); ++axis) {
    if (dims_[axis] < 1 || dims_[axis] > kMostChips || chips_ * dims_[axis] > kMostChips) {
      throw_error("LinkLoads: axis {} has {} chips; expected 1 or more, and at most 2**24 chips in all", axis,
                  dims_[axis]);
    }
    strides_.push_back(chips_);
    chips_ *= dims_[axis];
    wraps_[axis] = wraps_[axis] && dims_[axis] > 2;
  }
  changes_.assign(dims_.size() * static_cast<size_t>(chips_) * 2, 0.0);
}

void LinkLoads::add_range(size_t axis, bool forward, int64_t base, int64_t first, int64_t last, double bytes) {
  const int64_t stride = strides_[axis];
  change(axis, forward, base + first * stride) += bytes;
  if (last + 1 < dims_[axis]) change(axis, forward, base + (last + 1) * stride) -= bytes;
}

int64_t LinkLoads::add(int64_t from, int64_t to, double bytes) {
  if (std::min(from, to) < 0 || std::max(from, to) >= chips_) {
    throw_error("LinkLoads: a message goes from chip {} to {}; expected chips 0 to {}", from, to, chips_ - 1);
  }
  int64_t at = from;
  int64_t path = 0;
  for (size_t axis = 0; axis < dims_.size() && at != to; ++axis) {
    const int64_t size = dims_[axis];
    const int64_t stride = strides_[axis];
    const int64_t begin = at / stride % size;
    const int64_t end = to / stride % size;
    if (begin == end) continue;
    const int64_t base = at - begin * stride;
    // Links are counted by the chip that they leave: ahead [begin, end), back (end, begin], round the ends in two
    // parts.
    const auto go_ahead = [&](double part) {
      if (end > begin) return add_range(axis, true, base, begin, end - 1, part);
      add_range(axis, true, base, begin, size - 1, part);
      if (end > 0) add_range(axis, true, base, 0, end - 1, part);
    };
    const auto go_back = [&](double part) {
      if (end < begin) return add_range(axis, false, base, end + 1, begin, part);
      add_range(axis, false, base, 0, begin, part);
      if (end < size - 1) add_range(axis, false, base, end + 1, size - 1, part);
    };
    const int64_t ahead = (end - begin + size) % size;
    if (!wraps_[axis]) {
      end > begin ? go_ahead(bytes) : go_back(bytes);
      path += std::abs(end - begin);
    } else if (2 * ahead == size) {
      go_ahead(bytes / 2);
      go_back(bytes / 2);
      path += ahead;
    } else {
      2 * ahead < size ? go_ahead(bytes) : go_back(bytes);
      path += std::min(ahead, size - ahead);
    }
    at = base + end * stride;
  }
  longest_path_ = std::max(longest_path_, path);
  return path;
}

template <class Visit>
void LinkLoads::for_each_link(Visit&& visit) const {
  std::vector<double> load;  // of adjacent rows
  for (size_t row = 0; row < 2 * dims_.size(); ++row) {
    const auto stride = static_cast<size_t>(strides_[row / 2]);
    const auto size = static_cast<size_t>(dims_[row / 2]);
    const double* change = changes_.data() + row * static_cast<size_t>(chips_);
    for (size_t block = 0; block < static_cast<size_t>(chips_) / (stride * size); ++block) {
      load.assign(stride, 0.0);
      for (size_t place = 0; place < size; ++place) {
        for (size_t i = 0; i < stride; ++i) visit(load[i] += *change++);
      }
    }
  }
}

double LinkLoads::most_bytes() const noexcept {
  double most = 0;
  for_each_link([&](double load) { most = std::max(most, load); });
  return most;
}

double LinkLoads::total_bytes() const noexcept {
  double total = 0;
  for_each_link([&](double load) { total += load; });
  return total;
}

}  // namespace artifex_devices
