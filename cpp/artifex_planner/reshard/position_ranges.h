// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace artifex_devices::planner {

/// Positions (or device ids) `stride` apart: 0, stride, ..., (size - 1) * stride.
struct PositionRange {
  int64_t size = 1;
  int64_t stride = 1;
  int64_t end() const noexcept { return size * stride; }
};

/// Whether the range is digits of numbers that are written with digits between these boundaries (1, 2, 2 * 16, ... for
/// a chip of 2 cores on an axis of 16): adding a member of the range to a number that has 0 there changes these digits
/// alone, without carry. Groups along such ranges lie in a machine like one another, each somewhere else.
/// Example: {4, 2} is digits between 1, 8, 16, but not between 1, 3, 12.
bool are_digits(const PositionRange& range, const std::vector<int64_t>& boundaries) noexcept;

/// The numbers below `count` that are 0 in all ranges, ascending; empty where the ranges overlap or are not digits of
/// count.
std::vector<int64_t> first_positions(std::vector<PositionRange> ranges, int64_t count);

}  // namespace artifex_devices::planner
