// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/collective/reduce.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

#include "artifex_devices/base/error.h"

namespace artifex_devices {
namespace {

template <class T>
HostView view_of(std::vector<T>& values, DType dtype) {
  HostView view;
  view.data = values.data();
  view.dtype = dtype;
  view.shape = {static_cast<int64_t>(values.size())};
  view.byte_strides = {static_cast<int64_t>(sizeof(T))};
  return view;
}

template <class T>
std::vector<T> reduce(Reduction reduction, std::vector<std::vector<T>> inputs, DType dtype) {
  std::vector<HostView> views;
  for (std::vector<T>& input : inputs) views.push_back(view_of(input, dtype));
  std::vector<T> out(inputs[0].size());
  all_reduce(reduction, views, view_of(out, dtype));
  return out;
}

TEST(AllReduce, ComputesSumsProductsMaximaAndMinima) {
  const std::vector<std::vector<int32_t>> inputs = {{1, -2, 3}, {4, 5, -6}, {7, 8, 9}};
  EXPECT_EQ(reduce(Reduction::kSum, inputs, DType::kInt32), (std::vector<int32_t>{12, 11, 6}));
  EXPECT_EQ(reduce(Reduction::kProduct, inputs, DType::kInt32), (std::vector<int32_t>{28, -80, -162}));
  EXPECT_EQ(reduce(Reduction::kMax, inputs, DType::kInt32), (std::vector<int32_t>{7, 8, 9}));
  EXPECT_EQ(reduce(Reduction::kMin, inputs, DType::kInt32), (std::vector<int32_t>{1, -2, -6}));
}

TEST(AllReduce, WrapsIntegers) {
  EXPECT_EQ(reduce<int8_t>(Reduction::kSum, {{127}, {1}}, DType::kInt8), std::vector<int8_t>{-128});
  EXPECT_EQ(reduce<uint8_t>(Reduction::kSum, {{255}, {2}}, DType::kUInt8), std::vector<uint8_t>{1});
  EXPECT_EQ(reduce<int64_t>(Reduction::kSum, {{INT64_MAX}, {1}}, DType::kInt64), std::vector<int64_t>{INT64_MIN});
  EXPECT_EQ(reduce<int16_t>(Reduction::kProduct, {{300}, {300}}, DType::kInt16),
            std::vector<int16_t>{static_cast<int16_t>(90000 - 65536)});
}

TEST(AllReduce, ReducesInTheOrderOfTheInputs) {
  // (1e8 + 1) - 1e8 loses the 1; 1e8 - 1e8 + 1 does not.
  EXPECT_EQ(reduce<float>(Reduction::kSum, {{1e8F}, {1.F}, {-1e8F}}, DType::kFloat32), std::vector<float>{0.F});
  EXPECT_EQ(reduce<float>(Reduction::kSum, {{1e8F}, {-1e8F}, {1.F}}, DType::kFloat32), std::vector<float>{1.F});
}

TEST(AllReduce, PropagatesNaNInMaxAndMin) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const Reduction reduction : {Reduction::kMax, Reduction::kMin}) {
    for (int place = 0; place < 3; ++place) {
      std::vector<std::vector<float>> inputs = {{1.F}, {2.F}, {3.F}};
      inputs[static_cast<size_t>(place)][0] = nan;
      EXPECT_TRUE(std::isnan(reduce(reduction, inputs, DType::kFloat32)[0])) << place;
    }
  }
}

TEST(AllReduce, AccumulatesHalvesInFloat) {
  // 2048 + 1 is 2048 in float16; in float32 the ones add up.
  const uint16_t big = 0x6800;
  const uint16_t one = 0x3C00;
  EXPECT_EQ(reduce<uint16_t>(Reduction::kSum, {{big}, {one}, {one}}, DType::kFloat16), std::vector<uint16_t>{0x6801});
  // bfloat16: 256 + 1 + 1 = 258.
  EXPECT_EQ(reduce<uint16_t>(Reduction::kSum, {{0x4380}, {0x3F80}, {0x3F80}}, DType::kBFloat16),
            std::vector<uint16_t>{0x4381});
}

TEST(AllReduce, AddsComplexNumbers) {
  using C = std::complex<double>;
  EXPECT_EQ(reduce<C>(Reduction::kSum, {{{1, 2}}, {{3, -4}}}, DType::kComplex128), (std::vector<C>{{4, -2}}));
  EXPECT_THROW(reduce<C>(Reduction::kMax, {{{1, 2}}, {{3, -4}}}, DType::kComplex128), TypeMismatch);
}

TEST(AllReduce, ReducesBoolsWithOrAndAnd) {
  EXPECT_EQ(reduce<uint8_t>(Reduction::kMax, {{0, 1, 0}, {0, 1, 1}}, DType::kBool), (std::vector<uint8_t>{0, 1, 1}));
  EXPECT_EQ(reduce<uint8_t>(Reduction::kMin, {{0, 1, 0}, {0, 1, 1}}, DType::kBool), (std::vector<uint8_t>{0, 1, 0}));
  EXPECT_THROW(reduce<uint8_t>(Reduction::kSum, {{1}, {1}}, DType::kBool), TypeMismatch);
}

TEST(AllReduce, ReturnsTheSameBitsForLargeAndSmallInputs) {
  constexpr size_t kCount = 300'001;
  std::vector<std::vector<float>> inputs(5, std::vector<float>(kCount));
  for (size_t k = 0; k < inputs.size(); ++k) {
    for (size_t i = 0; i < kCount; ++i) {
      inputs[k][i] = std::sin(static_cast<float>(i * (k + 1))) * std::pow(10.F, static_cast<float>(k));
    }
  }
  const std::vector<float> whole = reduce(Reduction::kSum, inputs, DType::kFloat32);
  for (size_t i = 0; i < kCount; i += 997) {
    float expected = inputs[0][i];
    for (size_t k = 1; k < inputs.size(); ++k) expected += inputs[k][i];
    ASSERT_EQ(whole[i], expected) << i;
  }
}

TEST(AllReduce, CopiesASingleInputAndAcceptsEmptyOnes) {
  EXPECT_EQ(reduce<double>(Reduction::kSum, {{1.5, 2.5}}, DType::kFloat64), (std::vector<double>{1.5, 2.5}));
  EXPECT_EQ(reduce<double>(Reduction::kMax, {{}, {}}, DType::kFloat64), std::vector<double>{});
}

TEST(AllReduce, RefusesViewsThatDoNotMatch) {
  std::vector<float> a(4);
  std::vector<float> b(3);
  std::vector<float> out(4);
  std::vector<HostView> views = {view_of(a, DType::kFloat32), view_of(b, DType::kFloat32)};
  EXPECT_THROW(all_reduce(Reduction::kSum, views, view_of(out, DType::kFloat32)), InvalidArgument);
  EXPECT_THROW(all_reduce(Reduction::kSum, {}, view_of(out, DType::kFloat32)), InvalidArgument);
  views = {view_of(a, DType::kFloat8E5M2)};
  EXPECT_THROW(all_reduce(Reduction::kSum, views, view_of(out, DType::kFloat8E5M2)), InvalidArgument);
}

TEST(Reduction, IsFoundByName) {
  EXPECT_EQ(reduction_from_name("sum"), Reduction::kSum);
  EXPECT_EQ(reduction_from_name("prod"), Reduction::kProduct);
  EXPECT_EQ(reduction_from_name("max"), Reduction::kMax);
  EXPECT_EQ(reduction_from_name("min"), Reduction::kMin);
  EXPECT_THROW(reduction_from_name("mean"), InvalidArgument);
}

/// bfloat16 numbers of shape (2, 3, 2) and float32 results.
class FoldDimensions : public testing::Test {
 protected:
  FoldDimensions() {
    for (size_t i = 0; i < halves_.size(); ++i) {
      const auto number = static_cast<float>(i);
      uint32_t bits = 0;
      std::memcpy(&bits, &number, sizeof(bits));
      halves_[i] = static_cast<uint16_t>(bits >> 16);
    }
    array_ = view_of(halves_, DType::kBFloat16);
    array_.shape = {2, 3, 2};
    array_.byte_strides = {12, 4, 2};
  }
  static HostView out_of(std::vector<float>& values) {
    HostView view = view_of(values, DType::kFloat32);
    view.writable = true;
    return view;
  }

  std::vector<uint16_t> halves_ = std::vector<uint16_t>(12);
  HostView array_;
};

TEST_F(FoldDimensions, ReducesAnyRunOfDimensions) {
  std::vector<float> middle(4);
  fold_dimensions(Reduction::kSum, array_, 1, 2, out_of(middle));
  EXPECT_EQ(middle, (std::vector<float>{6, 9, 24, 27}));
  std::vector<float> last(2);
  fold_dimensions(Reduction::kMax, array_, 1, 3, out_of(last));
  EXPECT_EQ(last, (std::vector<float>{5, 11}));
  std::vector<float> all(1);
  fold_dimensions(Reduction::kMin, array_, 0, 3, out_of(all));
  EXPECT_EQ(all, std::vector<float>{0});
}

TEST_F(FoldDimensions, RefusesWhatDoesNotFit) {
  std::vector<float> out(4);
  for (const auto& [first, last] : {std::pair<int64_t, int64_t>{1, 1}, {-1, 1}, {2, 4}}) {
    EXPECT_THROW(fold_dimensions(Reduction::kSum, array_, first, last, out_of(out)), InvalidArgument);
  }
  EXPECT_THROW(fold_dimensions(Reduction::kSum, array_, 0, 3, out_of(out)), InvalidArgument);  // 4 results for 1
  HostView read_only = out_of(out);
  read_only.writable = false;
  EXPECT_THROW(fold_dimensions(Reduction::kSum, array_, 1, 2, read_only), InvalidArgument);
  HostView empty = array_;
  empty.shape = {2, 0, 2};
  empty.byte_strides = {4, 4, 2};
  EXPECT_THROW(fold_dimensions(Reduction::kSum, empty, 1, 2, out_of(out)), InvalidArgument);
  HostView floats = array_;
  floats.dtype = DType::kInt16;
  EXPECT_THROW(fold_dimensions(Reduction::kSum, floats, 1, 2, out_of(out)), InvalidArgument);
}

TEST_F(FoldDimensions, WidensHalves) {
  std::vector<float> out(12);
  widen(array_, out_of(out));
  std::vector<float> expected(12);
  std::iota(expected.begin(), expected.end(), 0.0f);
  EXPECT_EQ(out, expected);
  out.resize(11);
  EXPECT_THROW(widen(array_, out_of(out)), InvalidArgument);
}

}  // namespace
}  // namespace artifex_devices
