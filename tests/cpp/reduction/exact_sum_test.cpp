// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/reduction/exact_sum.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "artifex_devices/base/error.h"
#include "artifex_devices/base/isa.h"
#include "exact_numbers.h"

namespace artifex_devices {
namespace {

void expect_equal(ExactState expected, ExactState found) {
  expected.normalize();
  EXPECT_EQ(expected.limbs, found.limbs);
  EXPECT_EQ(expected.round({}), found.round({}));
}

/// The state of each element of the result, from the numbers one by one.
template <class T>
std::vector<ExactState> expected_states(const std::vector<T>& numbers, const std::vector<size_t>& result_of,
                                        size_t results) {
  std::vector<ExactState> states(results);
  for (size_t i = 0; i < numbers.size(); ++i) states[result_of[i]].add(static_cast<double>(numbers[i]));
  return states;
}

class EveryIsa : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override { set_active_isa(to_string(GetParam()), "test"); }
  void TearDown() override { set_active_isa(to_string(supported_isas().back()), "test"); }
};

template <class T>
void check_all(const std::vector<T>& numbers) {
  std::vector<T> copy = numbers;
  std::vector<ExactState> states(1);
  const bool reduced[] = {true};
  const HostView view = dense_view(copy, {static_cast<int64_t>(copy.size())});
  add_exactly(view, view, ExactTerm::kValue, reduced, states);
  expect_equal(expected_states(numbers, std::vector<size_t>(numbers.size(), 0), 1)[0], states[0]);
}

TEST_P(EveryIsa, AddsVectorsExactly) {
  for (const size_t count : {0, 1, 7, 8, 63, 2048, 2049, 5000}) {
    for (const int range : {0, 5, 20, 60, 120}) {
      check_all(spread_numbers<float>(count, range, 1));
      check_all(spread_numbers<double>(count, range, 2));
      check_all(spread_numbers<double>(count, range * 8, 3));
    }
  }
  check_all(std::vector<double>(3000, std::numeric_limits<double>::max()));
  check_all(std::vector<double>(3000, -std::numeric_limits<double>::denorm_min()));
  check_all(std::vector<float>(3000, -std::numeric_limits<float>::denorm_min()));
}

TEST_P(EveryIsa, AddsTheMostThatARunCanHold) {
  const double almost = std::nextafter(2.0, 0.0);
  check_all(std::vector<double>(kExactRun, almost));
  check_all(std::vector<double>(kExactRun, -almost));
  std::vector<double> ties(kExactRun, 1 + 0x1p-42 + 0x1p-52);
  check_all(ties);
}

TEST_P(EveryIsa, ReducesAnyDimensions) {
  const std::vector<double> numbers = spread_numbers<double>(5 * 70 * 300, 30, 4);
  for (const int mask : {0, 1, 2, 3, 4, 5, 6, 7}) {
    const bool reduced[] = {(mask & 4) != 0, (mask & 2) != 0, (mask & 1) != 0};
    const size_t sizes[] = {5, 70, 300};
    size_t results = 1;
    for (int d = 0; d < 3; ++d) results *= reduced[d] ? 1 : sizes[d];
    std::vector<size_t> result_of(numbers.size());
    for (size_t i = 0; i < numbers.size(); ++i) {
      const size_t index[] = {i / (70 * 300), i / 300 % 70, i % 300};
      size_t at = 0;
      for (int d = 0; d < 3; ++d) at = reduced[d] ? at : at * sizes[d] + index[d];
      result_of[i] = at;
    }
    std::vector<double> copy = numbers;
    std::vector<ExactState> states(results);
    const HostView view = dense_view(copy, {5, 70, 300});
    add_exactly(view, view, ExactTerm::kValue, reduced, states);
    const std::vector<ExactState> expected = expected_states(numbers, result_of, results);
    for (size_t i = 0; i < results; i += 1 + results / 50) expect_equal(expected[i], states[i]);
  }
}

TEST_P(EveryIsa, AddsSquaresAndProducts) {
  for (const bool is_column : {false, true}) {
    std::vector<float> a = spread_numbers<float>(3000, 40, 5);
    std::vector<float> b = spread_numbers<float>(3000, 40, 6);
    ExactState squares;
    ExactState products;
    for (size_t i = 0; i < a.size(); ++i) {
      squares.add(static_cast<double>(a[i]) * static_cast<double>(a[i]));
      products.add(static_cast<double>(a[i]) * static_cast<double>(b[i]));
    }
    const Dims shape = is_column ? Dims{1500, 2} : Dims{3000, 1};
    std::vector<ExactState> states(is_column ? 2 : 1);
    const bool reduced[] = {true, !is_column};
    add_exactly(dense_view(a, shape), dense_view(a, shape), ExactTerm::kSquare, reduced, states);
    if (is_column) {
      for (size_t i = 0; i < states[0].limbs.size(); ++i) states[0].limbs[i] += states[1].limbs[i];
      states[0].normalize();
    }
    expect_equal(squares, states[0]);
    std::vector<ExactState> pairs(1);
    const bool all[] = {true, true};
    add_exactly(dense_view(a, shape), dense_view(b, shape), ExactTerm::kProduct, all, pairs);
    expect_equal(products, pairs[0]);
  }
}

TEST_P(EveryIsa, AddsDeviationsFromOneNumber) {
  std::vector<float> numbers = spread_numbers<float>(5000, 3, 11);
  std::vector<double> mean = {0.1};
  HostView means = dense_view(mean, {5000});
  means.byte_strides = {0};
  ExactState expected;
  for (const float number : numbers)
    expected.add((static_cast<double>(number) - 0.1) * (static_cast<double>(number) - 0.1));
  std::vector<ExactState> found(1);
  const bool reduced[] = {true};
  add_exactly(dense_view(numbers, {5000}), means, ExactTerm::kDeviation, reduced, found);
  expect_equal(expected, found[0]);
}

TEST_P(EveryIsa, KeepsSpecialValues) {
  for (const bool is_column : {false, true}) {
    const auto sum = [&](double special, size_t at) {
      std::vector<double> numbers(3000, 1.5);
      numbers[at] = special;
      std::vector<ExactState> states(is_column ? 3000 : 1);
      const bool reduced[] = {true, !is_column};
      const HostView view = dense_view(numbers, {1, 3000});
      add_exactly(view, view, ExactTerm::kValue, reduced, states);
      return states[is_column ? at : 0].round({});
    };
    const double infinity = std::numeric_limits<double>::infinity();
    for (const size_t at : {size_t{0}, size_t{2047}, size_t{2999}}) {
      EXPECT_EQ(sum(infinity, at), infinity);
      EXPECT_EQ(sum(-infinity, at), -infinity);
      EXPECT_TRUE(std::isnan(sum(std::nan(""), at)));
    }
  }
  for (const double zero : {0.0, -0.0}) {
    std::vector<double> zeros(5000, -0.0);
    zeros[4000] = zero;
    for (const bool is_column : {false, true}) {
      std::vector<ExactState> states(is_column ? 2 : 1);
      const bool reduced[] = {true, !is_column};
      const HostView view = dense_view(zeros, {2500, 2});
      add_exactly(view, view, ExactTerm::kValue, reduced, states);
      EXPECT_EQ(std::signbit(states[0].round({})), std::signbit(zero));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(ExactSum, EveryIsa, testing::ValuesIn(supported_isas()),
                         [](const auto& isa) { return std::string(to_string(isa.param)); });

TEST(ExactSum, AddsPermutedLayouts) {
  std::vector<double> numbers = spread_numbers<double>(6 * 50, 20, 7);
  HostView view = dense_view(numbers, {6, 50});
  view.byte_strides = {8, 48};  // the first dimension is consecutive
  std::vector<ExactState> rows(6);
  const bool reduced[] = {false, true};
  add_exactly(view, view, ExactTerm::kValue, reduced, rows);
  std::vector<ExactState> expected(6);
  for (size_t i = 0; i < numbers.size(); ++i) expected[i % 6].add(numbers[i]);
  for (size_t i = 0; i < rows.size(); ++i) expect_equal(expected[i], rows[i]);
}

TEST(ExactSum, RefusesWhatDoesNotFit) {
  std::vector<double> numbers(12);
  std::vector<float> singles(12);
  HostView view = dense_view(numbers, {3, 4});
  std::vector<ExactState> states(3);
  const bool reduced[] = {true, false};
  EXPECT_THROW(add_exactly(view, view, ExactTerm::kValue, reduced, states), InvalidArgument);  // 4 results
  states.resize(2);
  view.shape = {3, 2};
  view.byte_strides = {32, 16};
  EXPECT_THROW(add_exactly(view, view, ExactTerm::kValue, reduced, states), InvalidArgument);
  view.byte_strides = {16, 8};
  std::vector<double> out(2);
  const HostView arrays[] = {view};
  EXPECT_THROW(reduce_exactly(arrays, {}, ExactTerm::kValue, reduced, {}, 1, out), InvalidArgument);
  EXPECT_THROW(reduce_exactly({}, {}, ExactTerm::kValue, reduced, {}, 1, out), InvalidArgument);
  EXPECT_THROW(reduce_exactly(arrays, arrays, ExactTerm::kValue, reduced, {}, 0, out), InvalidArgument);
  EXPECT_THROW(add_exactly(view, dense_view(singles, {3, 2}), ExactTerm::kDeviation, reduced, states), InvalidArgument);
  view.dtype = DType::kInt64;
  EXPECT_THROW(add_exactly(view, view, ExactTerm::kValue, reduced, states), InvalidArgument);
}

}  // namespace
}  // namespace artifex_devices
