// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/reshard/position_ranges.h"

#include <algorithm>

namespace artifex_devices::planner {

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
  std::vector<int64_t> firsts{0};
  int64_t begin = 1;
  for (const PositionRange& range : ranges) {
    if (range.stride < begin || range.stride % begin != 0) return {};
    const size_t inner = firsts.size();
    for (int64_t at = 1; at < range.stride / begin; ++at) {
      for (size_t i = 0; i < inner; ++i) firsts.push_back(firsts[i] + at * begin);
    }
    begin = range.end();
  }
  return firsts;
}

}  // namespace artifex_devices::planner
