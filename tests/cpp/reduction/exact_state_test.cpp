// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/reduction/exact_state.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace artifex_devices {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kGreatest = std::numeric_limits<double>::max();
constexpr double kLeast = std::numeric_limits<double>::denorm_min();
constexpr RoundingFormat kFloat32 = {24, -149, false};
constexpr RoundingFormat kFloat16 = {11, -24, false};

ExactState state_of(const std::vector<double>& numbers) {
  ExactState state;
  for (const double number : numbers) state.add(number);
  return state;
}

double sum_of(const std::vector<double>& numbers, const RoundingFormat& format = {}, int64_t divisor = 1) {
  return state_of(numbers).round(format, divisor);
}

TEST(ExactState, AddsWithoutError) {
  EXPECT_EQ(sum_of({1e308, 1, -1e308, kLeast}), 1);
  EXPECT_EQ(sum_of({1, 1e100, 1, -1e100}), 2);
  EXPECT_EQ(sum_of({0.1, 0.2, 0.3, -0.6}), 0x1p-55);  // the sum of the four doubles
  EXPECT_EQ(sum_of({kLeast, kLeast, -3 * kLeast}), -kLeast);
  EXPECT_EQ(sum_of({-1, 0x1p-60}), -1);
}

TEST(ExactState, RoundsTiesToEven) {
  EXPECT_EQ(sum_of({1, 0x1p-53}), 1);
  EXPECT_EQ(sum_of({1, 0x1p-53, kLeast}), 1 + 0x1p-52);
  EXPECT_EQ(sum_of({1, 0x1p-52, 0x1p-53}), 1 + 0x1p-51);
  EXPECT_EQ(sum_of({-1, -0x1p-52, -0x1p-53}), -1 - 0x1p-51);
  EXPECT_EQ(sum_of({-1, -0x1p-53, kLeast}), -1);
}

TEST(ExactState, RoundsOnceToTheFormat) {
  // As a double it is 1 + 2^-24, a tie that would go to 1.
  EXPECT_EQ(sum_of({1, 0x1p-24, 0x1p-80}, kFloat32), 1 + 0x1p-23);
  EXPECT_EQ(sum_of({1, 0x1p-24}, kFloat32), 1);
  EXPECT_EQ(sum_of({0x1p-149, 0x1p-150}, kFloat32), 0x1p-148);
  EXPECT_EQ(sum_of({0x1p-150}, kFloat32), 0);
  EXPECT_EQ(sum_of({0x1p-150, 0x1p-300}, kFloat32), 0x1p-149);
  EXPECT_EQ(sum_of({0x1p-151, 0x1p-152}, kFloat32), 0);
  EXPECT_EQ(sum_of({2048, 1, 0x1p-30}, kFloat16), 2050);
  EXPECT_EQ(static_cast<float>(sum_of({0x1.fffffep127, 0x1p103}, kFloat32)), std::numeric_limits<float>::infinity());
}

TEST(ExactState, RoundsToOddForAnotherRounding) {
  constexpr RoundingFormat kOdd = {24, -149, true};
  EXPECT_EQ(sum_of({1, 0x1p-60}, kOdd), 1 + 0x1p-23);
  EXPECT_EQ(sum_of({1, 0x1p-23, 0x1p-60}, kOdd), 1 + 0x1p-23);
  EXPECT_EQ(sum_of({1, 0x1p-22}, kOdd), 1 + 0x1p-22);
  EXPECT_EQ(sum_of({0x1p-200}, kOdd), 0x1p-149);
}

TEST(ExactState, Divides) {
  EXPECT_EQ(sum_of({1, 1, 0}, {}, 3), 2.0 / 3);
  EXPECT_EQ(sum_of({-1, -1, 0}, {}, 3), -2.0 / 3);
  EXPECT_EQ(sum_of({kGreatest, kGreatest}, {}, 2), kGreatest);
  EXPECT_EQ(sum_of({kLeast}, {}, 2), 0);
  EXPECT_EQ(sum_of({kLeast, kLeast, kLeast}, {}, 2), 2 * kLeast);
  EXPECT_EQ(sum_of({kLeast, kLeast, kLeast, kLeast, kLeast}, {}, 9), kLeast);
  EXPECT_EQ(sum_of({kLeast}, {}, INT64_MAX), 0);
  EXPECT_EQ(sum_of({1}, {}, int64_t{1} << 40), 0x1p-40);
  EXPECT_EQ(sum_of({1}, {}, (int64_t{1} << 40) + 1), 1.0 / ((int64_t{1} << 40) + 1));
}

TEST(ExactState, FollowsIeeeForSpecialValues) {
  EXPECT_TRUE(std::isnan(sum_of({1, kNan})));
  EXPECT_TRUE(std::isnan(sum_of({-kNan, kInfinity})));
  EXPECT_TRUE(std::isnan(sum_of({kInfinity, 1, -kInfinity})));
  EXPECT_EQ(sum_of({kInfinity, -kGreatest}), kInfinity);
  EXPECT_EQ(sum_of({-kInfinity, 1}), -kInfinity);
  EXPECT_EQ(sum_of({kGreatest, kGreatest}), kInfinity);
  EXPECT_EQ(sum_of({-kGreatest, -kGreatest}), -kInfinity);
  EXPECT_EQ(sum_of({kGreatest, kGreatest, -kGreatest}), kGreatest);
}

TEST(ExactState, HasTheSignOfZero) {
  EXPECT_FALSE(std::signbit(sum_of({})));
  EXPECT_FALSE(std::signbit(sum_of({0.0, -0.0})));
  EXPECT_FALSE(std::signbit(sum_of({1, -1})));
  EXPECT_TRUE(std::signbit(sum_of({-0.0, -0.0})));
  EXPECT_TRUE(std::signbit(sum_of({-0x1p-200}, kFloat32)));
}

TEST(ExactState, OfPartsAddsUpToTheStateOfAll) {
  ExactState one = state_of({1e300, -3, 0x1p-1000});
  ExactState two = state_of({-1e300, 1, -0x1p-1050});
  ExactState all = state_of({1e300, -1e300, 1, -0x1p-1050, -3, 0x1p-1000});
  one.normalize();
  two.normalize();
  for (size_t i = 0; i < one.limbs.size(); ++i) one.limbs[i] += two.limbs[i];
  one.normalize();
  all.normalize();
  EXPECT_EQ(one.limbs, all.limbs);
  EXPECT_EQ(one.round({}), -2);
}

TEST(RoundTo, RoundsOneNumber) {
  EXPECT_EQ(round_to(1 + 0x1p-11, kFloat16), 1);
  EXPECT_EQ(round_to(-1 - 0x1p-10 - 0x1p-11, kFloat16), -1 - 0x1p-9);
  EXPECT_EQ(round_to(kLeast, {}), kLeast);
  EXPECT_EQ(round_to(0x1p-25, kFloat16), 0);
  EXPECT_TRUE(std::signbit(round_to(-0.0, kFloat16)));
  EXPECT_EQ(round_to(-kInfinity, kFloat16), -kInfinity);
}

}  // namespace
}  // namespace artifex_devices
