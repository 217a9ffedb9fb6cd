// SPDX-License-Identifier: Apache-2.0
// Sums of each term in each layout, compared with states to which the terms are added one by one.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "artifex_devices/base/isa.h"
#include "artifex_devices/reduction/exact_sum.h"
#include "exact_numbers.h"

namespace artifex_devices {
namespace {

class EveryIsaOfTerms : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override { set_active_isa(to_string(GetParam()), "test"); }
  void TearDown() override { set_active_isa(to_string(supported_isas().back()), "test"); }
};

double term_of(ExactTerm term, double number, double other) {
  switch (term) {
    case ExactTerm::kAbsolute:
      return std::abs(number);
    case ExactTerm::kSquare:
      return number * number;
    case ExactTerm::kProduct:
      return number * other;
    case ExactTerm::kDeviation:
      return (number - other) * (number - other);
    default:
      return number;
  }
}

/// Adds all terms over dimension 0, over dimension 1 and over both, where `others` are as U or one for each column.
template <class T, class U>
void check_term(ExactTerm term, std::vector<T> numbers, std::vector<U> others, int64_t rows, int64_t columns,
                bool is_one_for_each_column) {
  const HostView array = dense_view(numbers, {rows, columns});
  HostView second = dense_view(others, {rows, columns});
  if (is_one_for_each_column) second.byte_strides = {0, static_cast<int64_t>(sizeof(U))};
  for (const int axes : {1, 2, 3}) {
    const bool reduced[] = {(axes & 1) != 0, (axes & 2) != 0};
    const int64_t results = (reduced[0] ? 1 : rows) * (reduced[1] ? 1 : columns);
    std::vector<ExactState> expected(static_cast<size_t>(results));
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        const int64_t result = (reduced[0] ? 0 : i) * (reduced[1] ? 1 : columns) + (reduced[1] ? 0 : j);
        const auto other =
            static_cast<double>(others[static_cast<size_t>(is_one_for_each_column ? j : i * columns + j)]);
        const auto number = static_cast<double>(numbers[static_cast<size_t>(i * columns + j)]);
        expected[static_cast<size_t>(result)].add(term_of(term, number, other));
      }
    }
    const RoundingFormat format = sizeof(T) == sizeof(float) ? RoundingFormat{24, -149, false} : RoundingFormat{};
    const HostView arrays[] = {array, array};
    const HostView seconds[] = {second, second};
    std::vector<double> sums(expected.size());
    reduce_exactly(arrays, seconds, term, reduced, format, 3, sums);
    for (size_t i = 0; i < sums.size(); ++i) {
      ExactState twice = expected[i];
      for (int64_t& limb : twice.limbs) limb *= 2;
      const auto value = static_cast<T>(twice.round(format, 3));  // overflows to infinity
      const auto sum = static_cast<T>(sums[i]);
      if (std::isnan(value)) {
        ASSERT_TRUE(std::isnan(sum));
        continue;
      }
      ASSERT_EQ(value, sum) << rows << "x" << columns << " axes " << axes << " result " << i;
      ASSERT_EQ(std::signbit(value), std::signbit(sum));
    }
    std::vector<ExactState> found(expected.size());
    add_exactly(array, second, term, reduced, found);
    for (size_t i = 0; i < found.size(); ++i) {
      const double value = expected[i].round({});
      if (std::isnan(value)) {
        ASSERT_TRUE(std::isnan(found[i].round({})));
        continue;
      }
      ASSERT_EQ(value, found[i].round({})) << rows << "x" << columns << " axes " << axes << " result " << i;
      ASSERT_EQ(std::signbit(value), std::signbit(found[i].round({})));
      if (std::isfinite(value)) {
        expected[i].normalize();
        ASSERT_EQ(expected[i].limbs, found[i].limbs);
      }
    }
  }
}

/// Numbers with special ones: infinities, NaN, zeros, cancellation, subnormal numbers.
template <class T>
std::vector<T> special_numbers(std::vector<T> numbers, int kind) {
  const size_t count = numbers.size();
  if (kind == 1) numbers[count / 2] = std::numeric_limits<T>::infinity();
  if (kind == 2) numbers[count / 3] = std::numeric_limits<T>::quiet_NaN();
  for (size_t i = 0; i < count; ++i) {
    if (kind == 3) numbers[i] = i % 5 == 0 ? T{1} : -T{0};
    if (kind == 4) numbers[i] = -T{0};
    if (kind == 5 && i + count / 2 < count) numbers[i] = -numbers[i + count / 2];
    if (kind == 6) numbers[i] *= std::numeric_limits<T>::min() / 1024;
    if (kind == 7) numbers[i] = std::numeric_limits<T>::max();
    if (kind == 8) numbers[i] = std::nextafter(T{2}, T{0});
  }
  return numbers;
}

template <class T>
void check_terms(int64_t rows, int64_t columns, int range, int kind) {
  const auto count = static_cast<size_t>(rows * columns);
  const std::vector<T> numbers = special_numbers(spread_numbers<T>(count, range, 8), kind);
  const std::vector<T> others = spread_numbers<T>(count, range, 9);
  const std::vector<double> means = spread_numbers<double>(count, range, 10);
  for (const ExactTerm term : {ExactTerm::kValue, ExactTerm::kAbsolute, ExactTerm::kSquare, ExactTerm::kProduct}) {
    check_term<T, T>(term, numbers, others, rows, columns, false);
  }
  for (const bool is_one_for_each_column : {false, true}) {
    check_term<T, double>(ExactTerm::kDeviation, numbers, means, rows, columns, is_one_for_each_column);
  }
}

TEST_P(EveryIsaOfTerms, AddsTermsOfRunsAndColumns) {
  const int64_t shapes[][2] = {{1, 2050}, {2050, 1}, {3, 40}, {70, 35}, {200, 7}, {33, 1100}, {128, 256}};
  for (const auto& shape : shapes) {
    for (const int range : {0, 40}) {
      check_terms<float>(shape[0], shape[1], range, 0);
      check_terms<double>(shape[0], shape[1], range * 3, 0);
    }
  }
  for (int kind = 1; kind <= 8; ++kind) {
    check_terms<float>(150, 70, 4, kind);
    check_terms<double>(150, 70, 4, kind);
  }
}

INSTANTIATE_TEST_SUITE_P(ExactTerms, EveryIsaOfTerms, testing::ValuesIn(supported_isas()),
                         [](const auto& isa) { return std::string(to_string(isa.param)); });

}  // namespace
}  // namespace artifex_devices
