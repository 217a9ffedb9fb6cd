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
/// alone, without carry. Groups along such ranges have the same layout in a machine, each at other devices.
/// Example: {4, 2} is digits between 1, 8, 16, but not between 1, 3, 12.
bool are_digits(const PositionRange& range, const std::vector<int64_t>& boundaries) noexcept;

/// The numbers below `count` that are 0 in all ranges, ascending; empty where the ranges overlap or are not digits of
/// count.
std::vector<int64_t> first_positions(std::vector<PositionRange> ranges, int64_t count);

/// The groups along some ranges: member i of the group that begins at `first` is first + members[i].
struct PositionGroups {
  std::vector<int64_t> firsts;   // first_positions()
  std::vector<int64_t> members;  // of every group, by the ranges in their order, the last one fastest
};
/// Example: {{2, 4}} below 8 has groups that begin at 0, 1, 2 and 3, with members 0 and 4.
PositionGroups groups_along(const std::vector<PositionRange>& ranges, int64_t count);
/// The devices of each group; `devices` are by position.
std::vector<std::vector<int64_t>> devices_of(const PositionGroups& groups, const std::vector<int64_t>& devices);

/// The axes of a mesh as ranges of its row-major positions.
std::vector<PositionRange> mesh_ranges(const std::vector<int64_t>& sizes);

}  // namespace artifex_devices::planner
