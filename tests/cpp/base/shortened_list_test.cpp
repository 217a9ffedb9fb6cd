// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/base/shortened_list.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace artifex_devices {
namespace {

TEST(ShortenedList, CountsWhatItLeavesOut) {
  const auto tens = [](int number) { return std::to_string(10 * number); };
  EXPECT_EQ(shortened_list(std::vector<int>{}, tens), "");
  EXPECT_EQ(shortened_list(std::vector{1, 2}, tens, 2), "10, 20");
  EXPECT_EQ(shortened_list(std::vector{1, 2, 3, 4}, tens, 2), "10, 20, and 2 more");
}

}  // namespace
}  // namespace artifex_devices
