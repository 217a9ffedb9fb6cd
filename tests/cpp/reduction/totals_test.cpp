// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/reduction/totals.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "artifex_devices/base/error.h"
#include "artifex_devices/base/isa.h"

namespace artifex_devices {
namespace {

template <class T>
HostView view_of(std::vector<T>& values, DType dtype, Dims shape, Dims strides = {}) {
  if (strides.empty()) strides = row_major_strides(shape, itemsize(dtype));
  return {.data = values.data(),
          .dtype = dtype,
          .shape = std::move(shape),
          .byte_strides = std::move(strides),
          .writable = true};
}

/// The distance between neighbours at this size.
double ulp(double value) {
  return std::nextafter(std::abs(value), std::numeric_limits<double>::infinity()) - std::abs(value);
}

std::vector<double> random_numbers(size_t count) {
  std::mt19937_64 random(count);
  std::uniform_real_distribution<double> any(-1, 1);
  std::vector<double> numbers(count);
  for (double& number : numbers) number = std::ldexp(any(random), static_cast<int>(random() % 40));
  return numbers;
}

/// Runs a test with each instruction set of this processor.
class TotalsTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { set_active_isa(GetParam(), "test"); }
  void TearDown() override { set_active_isa(to_string(supported_isas().back()), "test"); }
};

TEST_P(TotalsTest, SumOverAnyAxesOfWholeNumbersIsExact) {
  const Dims shape{5, 7, 3, 70};
  std::vector<int32_t> values(5 * 7 * 3 * 70);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int32_t>(i * 2654435761U);
  const HostView array = view_of(values, DType::kInt32, shape);
  for (int set = 1; set < 16; ++set) {
    Dims axes;
    for (int d = 0; d < 4; ++d) {
      if (set >> d & 1) axes.push_back(d);
    }
    Dims result{1, 1, 1, 1};
    for (int d = 0; d < 4; ++d) {
      if (!(set >> d & 1)) result[d] = shape[d];
    }
    std::vector<int64_t> expected(static_cast<size_t>(result[0] * result[1] * result[2] * result[3]));
    size_t i = 0;
    for (int64_t a = 0; a < 5; ++a)
      for (int64_t b = 0; b < 7; ++b)
        for (int64_t c = 0; c < 3; ++c)
          for (int64_t d = 0; d < 70; ++d) {
            const int64_t at = ((a % result[0] * result[1] + b % result[1]) * result[2] + c % result[2]) * result[3];
            expected[static_cast<size_t>(at + d % result[3])] += values[i++];
          }
    std::vector<int64_t> totals(expected.size());
    ASSERT_TRUE(write_totals(TotalKind::kSum, array, axes, view_of(totals, DType::kInt64, result)));
    EXPECT_EQ(totals, expected) << set;
  }
}

TEST_P(TotalsTest, StridedBlocksAreReadInPlace) {
  std::vector<float> values(20 * 30 * 40);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 1009);
  // Of shape (20, 30, 40): the columns 8 to 24 of the rows 3 to 20.
  std::vector<float> block(values.begin() + 3 * 40 + 8, values.end());
  const HostView part = view_of(block, DType::kFloat32, {20, 17, 16}, {30 * 40 * 4, 40 * 4, 4});
  std::vector<double> totals(20 * 16);
  ASSERT_TRUE(write_totals(TotalKind::kSum, part, {1}, view_of(totals, DType::kFloat64, {20, 1, 16})));
  for (int64_t a = 0; a < 20; ++a) {
    for (int64_t c = 0; c < 16; ++c) {
      double expected = 0;
      for (int64_t b = 0; b < 17; ++b) expected += block[static_cast<size_t>((a * 30 + b) * 40 + c)];
      EXPECT_EQ(totals[static_cast<size_t>(a * 16 + c)], expected);
    }
  }
  const HostView apart = view_of(block, DType::kFloat32, {20, 10}, {80, 8});
  EXPECT_FALSE(write_totals(TotalKind::kSum, apart, {1}, view_of(totals, DType::kFloat64, {20, 1})));
}

TEST_P(TotalsTest, Float64SumsHaveTheErrorOfPairs) {
  for (const size_t count : {2, 3, 15, 16, 17, 1000, 65536, 1 << 20, (1 << 20) + 13}) {
    std::vector<double> values = random_numbers(count);
    std::vector<double> total(1);
    ASSERT_TRUE(write_totals(TotalKind::kSum, view_of(values, DType::kFloat64, {static_cast<int64_t>(count)}), {0},
                             view_of(total, DType::kFloat64, {1})));
    long double exact = 0;
    long double size = 0;
    for (const double value : values) {
      exact += value;
      size += std::abs(value);
    }
    // 8 numbers in pairs, 8 of those in a row, then pairs: NumPy's bound has 11 in place of 7.
    const double depth = std::log2(static_cast<double>(count)) + 7;
    EXPECT_LE(std::abs(static_cast<double>(total[0] - exact)), depth * 0x1p-53 * static_cast<double>(size)) << count;
  }
}

TEST_P(TotalsTest, BitsAreThoseOfTheBaseline) {
  std::vector<double> values = random_numbers(40 * 3001);
  const HostView array = view_of(values, DType::kFloat64, {40, 3001});
  for (const TotalKind kind : {TotalKind::kSum, TotalKind::kAbsolute, TotalKind::kSquares}) {
    for (const int64_t axis : {0, 1}) {
      const Dims result = axis == 0 ? Dims{1, 3001} : Dims{40, 1};
      std::vector<double> here(3001);
      std::vector<double> baseline(3001);
      here.resize(static_cast<size_t>(result[0] * result[1]));
      baseline.resize(here.size());
      ASSERT_TRUE(write_totals(kind, array, {axis}, view_of(here, DType::kFloat64, result)));
      set_active_isa("baseline", "test");
      ASSERT_TRUE(write_totals(kind, array, {axis}, view_of(baseline, DType::kFloat64, result)));
      set_active_isa(GetParam(), "test");
      EXPECT_EQ(std::memcmp(here.data(), baseline.data(), here.size() * sizeof(double)), 0);
    }
  }
}

TEST_P(TotalsTest, SumsOfNegativeZerosAreZeroAsInNumPy) {
  for (const int64_t count : {2, 7, 16, 5000}) {
    std::vector<double> zeros(static_cast<size_t>(count), -0.0);
    std::vector<double> total{1};
    ASSERT_TRUE(write_totals(TotalKind::kSum, view_of(zeros, DType::kFloat64, {count}), {0},
                             view_of(total, DType::kFloat64, {1})));
    EXPECT_TRUE(total[0] == 0 && !std::signbit(total[0]));
  }
}

TEST_P(TotalsTest, ReportedExceptionsAreLeftToTheCaller) {
  const double infinity = std::numeric_limits<double>::infinity();
  std::vector<double> total(1);
  const auto runs = [&](TotalKind kind, std::vector<double> values) {
    return write_totals(kind, view_of(values, DType::kFloat64, {static_cast<int64_t>(values.size())}), {0},
                        view_of(total, DType::kFloat64, {1}));
  };
  EXPECT_FALSE(runs(TotalKind::kSum, {1e308, 1e308}));
  EXPECT_FALSE(runs(TotalKind::kSum, {infinity, -infinity}));
  EXPECT_FALSE(runs(TotalKind::kProduct, {1e-200, 1e-200}));
  ASSERT_TRUE(runs(TotalKind::kSum, {infinity, 1}));
  EXPECT_EQ(total[0], infinity);
  ASSERT_TRUE(runs(TotalKind::kSum, {std::numeric_limits<double>::quiet_NaN(), 1}));
  EXPECT_TRUE(std::isnan(total[0]));
  ASSERT_TRUE(runs(TotalKind::kSum, {5e-324, 5e-324}));
  EXPECT_EQ(total[0], 1e-323);
}

TEST_P(TotalsTest, ProductsOfIntegersWrap) {
  std::vector<int32_t> values(300, 3);
  values[7] = -5;
  std::vector<int64_t> total(1);
  ASSERT_TRUE(write_totals(TotalKind::kProduct, view_of(values, DType::kInt32, {300}), {0},
                           view_of(total, DType::kInt64, {1})));
  uint64_t expected = static_cast<uint64_t>(int64_t{-5});
  for (int i = 0; i < 299; ++i) expected *= 3;
  EXPECT_EQ(static_cast<uint64_t>(total[0]), expected);
}

TEST_P(TotalsTest, MomentsAreThoseOfTwoPasses) {
  std::vector<double> values = random_numbers(9 * 11 * 130);
  for (double& value : values) value += 1e13;
  const Dims shape{9, 11, 130};
  const HostView array = view_of(values, DType::kFloat64, shape);
  for (const Dims& axes : {Dims{0}, Dims{1}, Dims{2}, Dims{0, 1}, Dims{1, 2}, Dims{0, 2}, Dims{0, 1, 2}}) {
    Dims result = shape;
    for (const int64_t axis : axes) result[axis] = 1;
    const auto count = static_cast<size_t>(result[0] * result[1] * result[2]);
    const auto at = [&](size_t i) {
      const auto a = static_cast<int64_t>(i / (11 * 130));
      const auto b = static_cast<int64_t>(i / 130 % 11);
      const auto c = static_cast<int64_t>(i % 130);
      return static_cast<size_t>((a % result[0] * result[1] + b % result[1]) * result[2] + c % result[2]);
    };
    std::vector<long double> mean(count);
    std::vector<long double> square(count);
    const auto each = static_cast<long double>(values.size() / count);
    for (size_t i = 0; i < values.size(); ++i) mean[at(i)] += values[i] / each;
    for (size_t i = 0; i < values.size(); ++i) square[at(i)] += (values[i] - mean[at(i)]) * (values[i] - mean[at(i)]);
    std::vector<double> moments(3 * count);
    ASSERT_TRUE(write_moments(array, axes, view_of(moments, DType::kFloat64, {3, result[0], result[1], result[2]})));
    for (size_t i = 0; i < count; ++i) {
      EXPECT_NEAR(moments[i] + moments[count + i], static_cast<double>(mean[i]), ulp(moments[i]));
      EXPECT_NEAR(moments[2 * count + i], static_cast<double>(square[i]), 2e-14 * static_cast<double>(square[i]));
    }
  }
}

TEST_P(TotalsTest, MomentsOfEqualNumbersHaveNoSquares) {
  std::vector<float> values(100003, 0.1F);
  std::vector<double> moments(3, 1);
  ASSERT_TRUE(
      write_moments(view_of(values, DType::kFloat32, {100003}), {0}, view_of(moments, DType::kFloat64, {3, 1})));
  EXPECT_EQ(moments, (std::vector<double>{static_cast<double>(0.1F), 0, 0}));
}

TEST_P(TotalsTest, RefusesWhatDoesNotFit) {
  std::vector<float> values(6);
  std::vector<double> out(6);
  const HostView array = view_of(values, DType::kFloat32, {2, 3});
  EXPECT_THROW(write_totals(TotalKind::kSum, array, {2}, view_of(out, DType::kFloat64, {6})), InvalidArgument);
  EXPECT_THROW(write_totals(TotalKind::kSum, array, {1}, view_of(out, DType::kFloat64, {3})), InvalidArgument);
  EXPECT_THROW(write_totals(TotalKind::kSum, array, {1}, view_of(out, DType::kInt64, {2})), TypeMismatch);
  EXPECT_THROW(write_moments(array, {1}, view_of(values, DType::kFloat32, {6})), TypeMismatch);
  EXPECT_THROW(write_moments(array, {1}, view_of(out, DType::kFloat64, {3})), InvalidArgument);
  EXPECT_THROW(total_kind_from_name("max"), InvalidArgument);
}

INSTANTIATE_TEST_SUITE_P(OfEachIsa, TotalsTest, testing::ValuesIn([] {
                           std::vector<std::string> names;
                           for (const Isa isa : supported_isas()) names.emplace_back(to_string(isa));
                           return names;
                         }()),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace artifex_devices
