// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/reduction/exact_all_reduce.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "artifex_devices/base/error.h"
#include "artifex_devices/reduction/exact_sum.h"

namespace artifex_devices {
namespace {

template <class T>
HostView view_of(std::vector<T>& values) {
  HostView view;
  view.data = values.data();
  view.dtype = sizeof(T) == sizeof(float) ? DType::kFloat32 : DType::kFloat64;
  view.shape = {static_cast<int64_t>(values.size())};
  view.byte_strides = {sizeof(T)};
  return view;
}

template <class T>
std::vector<T> reduced(std::vector<std::vector<T>> inputs, const RoundingFormat& format, int64_t divisor = 1) {
  std::vector<HostView> views;
  for (auto& input : inputs) views.push_back(view_of(input));
  std::vector<T> out(inputs[0].size());
  exact_all_reduce(views, format, divisor, view_of(out));
  return out;
}

template <class T>
void check_random(int range, size_t members, DType format_of) {
  std::mt19937_64 random(members);
  std::uniform_real_distribution<T> fractions(-1, 1);
  std::uniform_int_distribution<int> exponents(-range, range);
  std::vector<std::vector<T>> inputs(members, std::vector<T>(130));
  for (auto& input : inputs) {
    for (T& number : input) number = std::ldexp(fractions(random), exponents(random));
  }
  const RoundingFormat format = rounding_format(format_of);
  for (const int64_t divisor : {int64_t{1}, int64_t{2}, static_cast<int64_t>(members), int64_t{1} << 60}) {
    const std::vector<T> found = reduced(inputs, format, divisor);
    for (size_t i = 0; i < found.size(); ++i) {
      ExactState state;
      for (const auto& input : inputs) state.add(static_cast<double>(input[i]));
      const T expected = static_cast<T>(state.round(format, divisor));
      EXPECT_EQ(found[i], expected) << i << " by " << divisor;
      EXPECT_EQ(std::signbit(found[i]), std::signbit(expected));
    }
    std::ranges::reverse(inputs);
    EXPECT_EQ(found, reduced(inputs, format, divisor));
  }
}

TEST(ExactAllReduce, RoundsTheExactSumOnce) {
  for (const size_t members : {size_t{1}, size_t{3}, size_t{8}, size_t{100}}) {
    for (const int range : {0, 10, 30, 60, 120}) {
      for (const DType format : {DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kFloat8E5M2}) {
        check_random<float>(range, members, format);
      }
      check_random<double>(range, members, DType::kFloat64);
      check_random<double>(range * 8, members, DType::kFloat64);
    }
  }
}

TEST(ExactAllReduce, FollowsIeeeForSpecialValues) {
  const double infinity = std::numeric_limits<double>::infinity();
  const double greatest = std::numeric_limits<double>::max();
  const std::vector<double> found = reduced<double>({{1, infinity, infinity, greatest, -0.0, -0.0},
                                                     {NAN, -infinity, 1, greatest, -0.0, 0.0},
                                                     {1, 1, 1, -greatest, -0.0, -0.0}},
                                                    {});
  EXPECT_TRUE(std::isnan(found[0]));
  EXPECT_TRUE(std::isnan(found[1]));
  EXPECT_EQ(found[2], infinity);
  EXPECT_EQ(found[3], greatest);
  EXPECT_TRUE(std::signbit(found[4]));
  EXPECT_FALSE(std::signbit(found[5]));
}

TEST(ExactAllReduce, RefusesWhatDoesNotFit) {
  std::vector<double> two(2);
  std::vector<double> three(3);
  const HostView inputs[] = {view_of(two)};
  EXPECT_THROW(exact_all_reduce(inputs, {}, 1, view_of(three)), InvalidArgument);
  EXPECT_THROW(exact_all_reduce(inputs, {}, 0, view_of(two)), InvalidArgument);
  EXPECT_THROW(exact_all_reduce({}, {}, 1, view_of(two)), InvalidArgument);
}

}  // namespace
}  // namespace artifex_devices
