// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/collective/combine.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "artifex_devices/base/isa.h"
#include "artifex_devices/base/stream_copy.h"

namespace artifex_devices {
namespace {

template <class T>
T one_by_one(Reduction reduction, T total, T next) {
  using Wide = std::conditional_t<std::is_integral_v<T>, uint64_t, T>;
  switch (reduction) {
    case Reduction::kSum:
      return static_cast<T>(static_cast<Wide>(total) + static_cast<Wide>(next));
    case Reduction::kProduct:
      return static_cast<T>(static_cast<Wide>(total) * static_cast<Wide>(next));
    case Reduction::kMax:
      return total >= next || total != total ? total : next;
    case Reduction::kMin:
      break;
  }
  return total <= next || total != total ? total : next;
}

template <class T>
std::vector<T> numbers(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<T> made(count);
  for (T& value : made) {
    if constexpr (std::is_integral_v<T>) {
      value = static_cast<T>(random());
    } else {
      value = random() % 50 == 0 ? std::numeric_limits<T>::quiet_NaN() : static_cast<T>(random()) / T{65536} - T{30000};
    }
  }
  return made;
}

template <class T>
void expect_same(const std::vector<T>& got, const std::vector<T>& expected, const char* what) {
  for (size_t i = 0; i < got.size(); ++i) {
    const bool both_nan = got[i] != got[i] && expected[i] != expected[i];
    ASSERT_TRUE(both_nan || std::memcmp(&got[i], &expected[i], sizeof(T)) == 0) << what << ", element " << i;
  }
}

template <class T>
void check_all(ArithmeticType type) {
  // Around the eight inputs that are read at a time, and lengths beside those of registers and tiles.
  for (const size_t inputs : {1, 2, 7, 8, 9, 15, 16, 23}) {
    for (const size_t elements : {size_t{1}, size_t{67}, (size_t{16} << 10) / sizeof(T) * 2 + 13}) {
      std::vector<std::vector<T>> values;
      std::vector<const void*> data;
      for (size_t i = 0; i < inputs; ++i) values.push_back(numbers<T>(elements, static_cast<uint32_t>(i)));
      for (const std::vector<T>& each : values) data.push_back(each.data());
      for (const Reduction reduction : {Reduction::kSum, Reduction::kProduct, Reduction::kMax, Reduction::kMin}) {
        std::vector<T> expected = values[0];
        for (size_t i = 1; i < inputs; ++i) {
          for (size_t e = 0; e < elements; ++e) expected[e] = one_by_one(reduction, expected[e], values[i][e]);
        }
        for (const bool stream : {false, true}) {
          std::vector<T> out(elements);
          combine(reduction, type, data, out.data(), 0, static_cast<int64_t>(elements), stream);
          stream_fence();
          expect_same(out, expected, stream ? "past the cache" : "through the cache");
        }
      }
    }
  }
}

class CombineOnEachSet : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override { set_active_isa(to_string(GetParam()), "CombineOnEachSet"); }
  void TearDown() override { set_active_isa(to_string(supported_isas().back()), "CombineOnEachSet"); }
};

TEST_P(CombineOnEachSet, ReturnsTheBitsOfASequentialReduction) {
  check_all<int8_t>(ArithmeticType::kInt8);
  check_all<int16_t>(ArithmeticType::kInt16);
  check_all<int32_t>(ArithmeticType::kInt32);
  check_all<int64_t>(ArithmeticType::kInt64);
  check_all<uint8_t>(ArithmeticType::kUInt8);
  check_all<uint16_t>(ArithmeticType::kUInt16);
  check_all<uint32_t>(ArithmeticType::kUInt32);
  check_all<uint64_t>(ArithmeticType::kUInt64);
  check_all<float>(ArithmeticType::kFloat32);
  check_all<double>(ArithmeticType::kFloat64);
}

INSTANTIATE_TEST_SUITE_P(All, CombineOnEachSet, testing::ValuesIn(supported_isas()),
                         [](const auto& set) { return std::string(to_string(set.param)); });

TEST(Combine, WritesOnlyTheElementsOfItsRange) {
  const std::vector<int32_t> a(100, 1);
  const std::vector<int32_t> b(100, 2);
  const std::vector<const void*> data = {a.data(), b.data()};
  std::vector<int32_t> out(100, -1);
  combine(Reduction::kSum, ArithmeticType::kInt32, data, out.data(), 3, 70, true);
  stream_fence();
  for (size_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i], i >= 3 && i < 70 ? 3 : -1) << i;
}

TEST(Combine, KeepsTheFirstOfEqualZeros) {
  const std::vector<float> minus(40, -0.F);
  const std::vector<float> plus(40, 0.F);
  const std::vector<const void*> data = {minus.data(), plus.data()};
  std::vector<float> out(40, 1.F);
  combine(Reduction::kMax, ArithmeticType::kFloat32, data, out.data(), 0, 40, false);
  for (const float value : out) EXPECT_TRUE(value == 0.F && std::signbit(value));
}

}  // namespace
}  // namespace artifex_devices
