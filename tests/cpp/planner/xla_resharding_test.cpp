// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/planner/xla_resharding.h"

#include <gtest/gtest.h>

#include <fstream>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "artifex_devices/base/error.h"

namespace artifex_devices {
namespace {

TEST(XlaResharding, ExamplesOfEachKind) {
  EXPECT_FALSE(xla_gathers_everything(8, {1, 4}, {1, 4}));
  EXPECT_FALSE(xla_gathers_everything(8, {1, 1}, {4, 2}));  // slices
  EXPECT_FALSE(xla_gathers_everything(8, {4, 2}, {1, 1}));  // meant to be gathered
  EXPECT_FALSE(xla_gathers_everything(8, {1, 4}, {4, 1}));  // an all-to-all
  EXPECT_FALSE(xla_gathers_everything(8, {1, 4}, {8, 1}));  // a slice and an all-to-all
  EXPECT_TRUE(xla_gathers_everything(8, {1, 4}, {2, 1}));
  EXPECT_TRUE(xla_gathers_everything(8, {1, 2}, {4, 1}));
  EXPECT_TRUE(xla_gathers_everything(8, {2, 2}, {8, 1}));
  EXPECT_TRUE(xla_gathers_everything(8, {1, 2, 4}, {8, 1, 1}));
}

TEST(XlaResharding, AgreesWithWhatJaxLogged) {
  std::ifstream file(ARTIFEX_TEST_DATA "/xla_resharding.json");
  ASSERT_TRUE(file);
  int rows = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.find("[[") != 0) continue;
    for (char& c : line) c = c == '[' || c == ']' || c == ',' ? ' ' : c;
    std::istringstream text(line);
    std::vector<int64_t> numbers;
    for (int64_t number = 0; text >> number;) numbers.push_back(number);
    ASSERT_EQ(numbers.size() % 2, 0);  // devices, parts of both ends, 0 or 1
    const size_t rank = (numbers.size() - 2) / 2;
    const std::span<const int64_t> parts(numbers.data() + 1, 2 * rank);
    EXPECT_EQ(xla_gathers_everything(numbers[0], Dims(parts.first(rank)), Dims(parts.last(rank))), numbers.back() == 1)
        << line;
    ++rows;
  }
  EXPECT_EQ(rows, 581);
}

TEST(XlaResharding, RefusesWhatIsNoCut) {
  EXPECT_THROW(xla_gathers_everything(8, {1, 2}, {2}), InvalidArgument);
  EXPECT_THROW(xla_gathers_everything(8, {0}, {2}), InvalidArgument);
  EXPECT_THROW(xla_gathers_everything(12, {3}, {2}), InvalidArgument);
}

}  // namespace
}  // namespace artifex_devices
