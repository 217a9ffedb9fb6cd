// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/reshard/xla_resharding.h"

#include <gtest/gtest.h>

#include <fstream>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "artifex_devices/base/error.h"

namespace artifex_devices::planner {
namespace {

TEST(XlaResharding, ChoosesTheExpectedStrategyForEachKind) {
  EXPECT_EQ(xla_gathers_everything(8, {1, 4}, {1, 4}), false);
  EXPECT_EQ(xla_gathers_everything(8, {1, 1}, {4, 2}), false);  // slices
  EXPECT_EQ(xla_gathers_everything(8, {4, 2}, {1, 1}), false);  // meant to be gathered
  EXPECT_EQ(xla_gathers_everything(8, {1, 4}, {4, 1}), false);  // an all-to-all
  EXPECT_EQ(xla_gathers_everything(8, {1, 4}, {8, 1}), false);  // a slice and an all-to-all
  EXPECT_EQ(xla_gathers_everything(8, {1, 4}, {2, 1}), true);
  EXPECT_EQ(xla_gathers_everything(8, {1, 2}, {4, 1}), true);
  EXPECT_EQ(xla_gathers_everything(8, {2, 2}, {8, 1}), true);
  EXPECT_EQ(xla_gathers_everything(8, {1, 2, 4}, {8, 1, 1}), true);
}

TEST(XlaResharding, MatchesTheStrategiesThatJaxLogged) {
  std::ifstream file(ARTIFEX_TEST_DATA "/xla_resharding.json");
  ASSERT_TRUE(file);
  int rows = 0;
  int not_known = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.find("[[") != 0) continue;
    for (char& c : line) c = c == '[' || c == ']' || c == ',' ? ' ' : c;
    std::istringstream text(line);
    std::vector<int64_t> numbers;
    for (int64_t number = 0; text >> number;) numbers.push_back(number);
    ASSERT_EQ(numbers.size() % 2, 0);  // devices, parts of both ends, what was logged
    const size_t rank = (numbers.size() - 2) / 2;
    const std::span<const int64_t> parts(numbers.data() + 1, 2 * rank);
    const auto answer = xla_gathers_everything(numbers[0], Dims(parts.first(rank)), Dims(parts.last(rank)));
    if (answer) {
      EXPECT_EQ(*answer ? 1 : 0, numbers.back()) << line;
    } else {
      EXPECT_NE(numbers[0] & (numbers[0] - 1), 0) << line;  // of powers of 2 one always divides the other
      ++not_known;
    }
    ++rows;
  }
  EXPECT_EQ(rows, 581 + 881);
  EXPECT_EQ(not_known, 128);
}

TEST(XlaResharding, RefusesInvalidParts) {
  EXPECT_THROW(xla_gathers_everything(8, {1, 2}, {2}), InvalidArgument);
  EXPECT_THROW(xla_gathers_everything(8, {0}, {2}), InvalidArgument);
  EXPECT_THROW(xla_gathers_everything(0, {2}, {2}), InvalidArgument);
}

TEST(XlaResharding, ReturnsNothingWhereNeitherNumberOfPartsDividesTheOther) {
  EXPECT_EQ(xla_gathers_everything(12, {3, 4}, {4, 3}), std::nullopt);  // XLA gathers
  EXPECT_EQ(xla_gathers_everything(6, {1, 2}, {2, 3}), std::nullopt);   // it does not
  EXPECT_EQ(xla_gathers_everything(12, {2, 2}, {3, 1}), true);          // by the rule, and in XLA
  EXPECT_EQ(xla_gathers_everything(12, {3, 1}, {1, 3}), false);
}

}  // namespace
}  // namespace artifex_devices::planner
