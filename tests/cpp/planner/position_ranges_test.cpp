// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/cost/position_ranges.h"

#include <gtest/gtest.h>

namespace artifex_devices::planner {
namespace {

TEST(PositionRanges, KeepOtherDigitsUnchanged) {
  EXPECT_TRUE(are_digits({4, 2}, {1, 8, 16}));
  EXPECT_TRUE(are_digits({4, 2}, {1, 2, 4, 8}));
  EXPECT_FALSE(are_digits({4, 2}, {1, 3, 12}));  // 2 + 2 carries over 3
  EXPECT_FALSE(are_digits({4, 2}, {1, 12}));     // 4 and 2 + 6 + 4 are not in one row
  EXPECT_FALSE(are_digits({2, 3}, {1, 2, 6}));   // begins between two
  EXPECT_TRUE(are_digits({2, 3}, {1, 3, 6, 12}));
}

TEST(PositionRanges, ListTheFirstPositionsOfRanges) {
  EXPECT_EQ(first_positions({{2, 1}, {2, 4}}, 16), (std::vector<int64_t>{0, 2, 8, 10}));
  EXPECT_EQ(first_positions({{2, 4}, {1, 3}, {2, 1}}, 8), (std::vector<int64_t>{0, 2}));
  EXPECT_EQ(first_positions({}, 3), (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(first_positions({{4, 1}, {2, 2}}, 8), std::vector<int64_t>{});  // they overlap
  EXPECT_EQ(first_positions({{4, 1}}, 6), std::vector<int64_t>{});
}

TEST(PositionRanges, HaveGroupsAlongThem) {
  const PositionGroups rows = groups_along({{2, 4}}, 8);
  EXPECT_EQ(rows.firsts, (std::vector<int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(rows.members, (std::vector<int64_t>{0, 4}));
  const PositionGroups swapped = groups_along({{2, 1}, {2, 4}}, 8);  // the last range is the fastest
  EXPECT_EQ(swapped.firsts, (std::vector<int64_t>{0, 2}));
  EXPECT_EQ(swapped.members, (std::vector<int64_t>{0, 4, 1, 5}));
  EXPECT_EQ(groups_along({}, 2).members, std::vector<int64_t>{0});
}

}  // namespace
}  // namespace artifex_devices::planner
