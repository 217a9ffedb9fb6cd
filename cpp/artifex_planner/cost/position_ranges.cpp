// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/cost/position_ranges.h"

#include <algorithm>
#include <utility>

namespace artifex_devices::planner {
namespace {

/// The sums of one member of each range, the last range fastest.
std::vector<int64_t> sums_of(const std::vector<PositionRange>& ranges) {
  std::vector<int64_t> sums{0};
  for (const PositionRange& range : ranges) {
    std::vector<int64_t> more;
    more.reserve(sums.size() * static_cast<size_t>(range.size));
    for (const int64_t sum : sums) {
      for (int64_t i = 0; i < range.size; ++i) more.push_back(sum + i * range.stride);
    }
    sums = std::move(more);
  }
  return sums;
}

}  // namespace

bool are_digits(const PositionRange& range, const std::vector<int64_t>& boundaries) noexcept {
  return std::ranges::all_of(boundaries, [&](int64_t boundary) {
    if (boundary <= range.stride) return range.stride % boundary == 0;
    if (boundary >= range.end()) return boundary % range.end() == 0;
    return boundary % range.stride == 0 && range.end() % boundary == 0;
  });
}

std::vector<int64_t> first_positions(std::vector<PositionRange> ranges, int64_t count) {
  std::erase_if(ranges, [](const PositionRange& range) { return range.size == 1; });
  std::ranges::sort(ranges, {}, &PositionRange::stride);
  ranges.push_back({1, count});
  std::vector<PositionRange> others;  // the gaps between the ranges
  int64_t begin = 1;
  for (const PositionRange& range : ranges) {
    if (range.stride < begin || range.stride % begin != 0) return {};
    others.push_back({range.stride / begin, begin});
    begin = range.end();
  }
  std::ranges::reverse(others);
  return sums_of(others);
}

PositionGroups groups_along(const std::vector<PositionRange>& ranges, int64_t count) {
  return {first_positions(ranges, count), sums_of(ranges)};
}

std::vector<std::vector<int64_t>> devices_of(const PositionGroups& groups, const std::vector<int64_t>& devices) {
  std::vector<std::vector<int64_t>> result;
  for (const int64_t first : groups.firsts) {
    std::vector<int64_t>& group = result.emplace_back(groups.members);
    for (int64_t& member : group) member = devices[static_cast<size_t>(first + member)];
  }
  return result;
}

std::vector<PositionRange> mesh_ranges(const std::vector<int64_t>& sizes) {
  std::vector<PositionRange> ranges;
  int64_t stride = 1;
  for (auto size = sizes.rbegin(); size != sizes.rend(); ++size) {
    ranges.push_back({*size, stride});
    stride *= *size;
  }
  std::ranges::reverse(ranges);
  return ranges;
}

}  // namespace artifex_devices::planner
