// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/collective/halves.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "artifex_devices/base/isa.h"
#include "artifex_devices/base/stream_copy.h"

namespace artifex_devices {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr Reduction kAll[] = {Reduction::kSum, Reduction::kProduct, Reduction::kMax, Reduction::kMin};

float as_float(ArithmeticType type, uint16_t bits) {
  if (type == ArithmeticType::kBFloat16) return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  const int exponent = bits >> 10 & 31;
  const int fraction = bits & 1023;
  float value = 0;
  if (exponent == 31) {
    value = fraction == 0 ? kInfinity : std::numeric_limits<float>::quiet_NaN();
  } else {
    value = exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                          : std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
  }
  return bits >> 15 != 0 ? -value : value;
}

// By the distance between neighbours at this size, which is a power of two: nearbyint takes ties to the even one.
uint16_t as_half(ArithmeticType type, float value) {
  const bool is_brain = type == ArithmeticType::kBFloat16;
  const uint32_t sign = std::signbit(value) ? 0x8000 : 0;
  if (std::isnan(value)) return static_cast<uint16_t>(sign | (is_brain ? 0x7fc0 : 0x7e00));
  int exponent = 0;
  std::frexp(value, &exponent);
  const double apart = std::ldexp(1.0, std::max(exponent - (is_brain ? 8 : 11), is_brain ? -133 : -24));
  const double near = std::isinf(value) ? value : std::nearbyint(std::abs(value) / apart) * apart;
  if (is_brain) return static_cast<uint16_t>(sign | std::bit_cast<uint32_t>(static_cast<float>(std::abs(near))) >> 16);
  if (std::abs(near) >= 65536) return static_cast<uint16_t>(sign | 0x7c00);
  if (near < std::ldexp(1.0, -14)) return static_cast<uint16_t>(sign | static_cast<uint32_t>(std::ldexp(near, 24)));
  const int power = std::ilogb(near);
  const double fraction = std::ldexp(near, 10 - power) - 1024;
  return static_cast<uint16_t>(sign | static_cast<uint32_t>(power + 15) << 10 | static_cast<uint32_t>(fraction));
}

float one_step(Reduction reduction, float total, float next) {
  if (reduction == Reduction::kSum) return total + next;
  if (reduction == Reduction::kProduct) return total * next;
  if (total != total) return total;
  const bool keeps = reduction == Reduction::kMax ? total >= next : total <= next;
  return keeps ? total : next;
}

bool is_nan(ArithmeticType type, uint16_t bits) { return std::isnan(as_float(type, bits)); }

std::vector<uint16_t> some(ArithmeticType type, size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<uint16_t> made(count);
  for (uint16_t& bits : made) {
    const float value = static_cast<float>(random() % 4096) / 256.F - 8.F;
    bits = as_half(type, random() % 64 == 0 ? std::numeric_limits<float>::quiet_NaN() : value);
  }
  return made;
}

// Every float whose rounding is a close case: each 16-bit number, exact, and just below, at and above the midpoints.
std::vector<float> close_cases() {
  std::vector<float> values;
  for (uint32_t high = 0; high < 0x10000; ++high) {
    for (const uint32_t low :
         {0x0000U, 0x0001U, 0x0fffU, 0x1000U, 0x1001U, 0x2000U, 0x7fffU, 0x8000U, 0x8001U, 0xffffU}) {
      values.push_back(std::bit_cast<float>(high << 16 | low));
    }
  }
  return values;
}

class HalvesOnEachSet : public testing::TestWithParam<std::tuple<Isa, ArithmeticType>> {
 protected:
  void SetUp() override { use(std::get<0>(GetParam())); }
  void TearDown() override { use(supported_isas().back()); }
  static void use(Isa isa) { set_active_isa(to_string(isa), "HalvesOnEachSet"); }
  static ArithmeticType type() { return std::get<1>(GetParam()); }
};

TEST_P(HalvesOnEachSet, WidensEveryNumberExactly) {
  std::vector<uint16_t> halves(0x10000);
  for (size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<uint16_t>(i);
  std::vector<float> wide(halves.size());
  widen(type(), halves.data(), static_cast<int64_t>(halves.size()), wide.data());
  for (size_t i = 0; i < halves.size(); ++i) {
    const float expected = as_float(type(), halves[i]);
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(wide[i])) << i;
    } else {
      ASSERT_EQ(std::bit_cast<uint32_t>(wide[i]), std::bit_cast<uint32_t>(expected)) << i;
    }
  }
}

TEST_P(HalvesOnEachSet, RoundsFloatsToNearestAndTiesToEven) {
  const std::vector<float> values = close_cases();
  std::vector<uint16_t> halves(values.size());
  narrow(type(), values.data(), static_cast<int64_t>(values.size()), halves.data());
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(values[i])) {
      ASSERT_TRUE(is_nan(type(), halves[i])) << i;
      ASSERT_EQ(halves[i] >> 15 != 0, std::signbit(values[i])) << i;
    } else {
      ASSERT_EQ(halves[i], as_half(type(), values[i])) << values[i];
    }
  }
  std::vector<uint16_t> baseline(values.size());
  use(Isa::kBaseline);
  narrow(type(), values.data(), static_cast<int64_t>(values.size()), baseline.data());
  EXPECT_EQ(halves, baseline) << "bits of NaN, too, are the same on every processor";
}

TEST_P(HalvesOnEachSet, ConvertsExactlyTheRequestedCount) {
  for (int64_t count = 0; count <= 70; ++count) {
    const std::vector<uint16_t> halves = some(type(), static_cast<size_t>(count), 1);
    std::vector<float> wide(80, 7.F);
    widen(type(), halves.data(), count, wide.data());
    std::vector<uint16_t> back(80, 7);
    narrow(type(), wide.data(), count, back.data());
    for (int64_t i = 0; i < 80; ++i) {
      const auto at = static_cast<size_t>(i);
      if (i >= count) {
        EXPECT_EQ(wide[at], 7.F);
        EXPECT_EQ(back[at], 7);
      } else if (!is_nan(type(), halves[at])) {
        EXPECT_EQ(back[at], halves[at]) << count;
      }
    }
  }
}

TEST_P(HalvesOnEachSet, AddsManyInputsInFloat32AndRoundsOnce) {
  for (const size_t inputs : {1, 2, 7, 8, 9, 17}) {
    for (const size_t elements : {size_t{1}, size_t{67}, size_t{4096 * 2 + 13}}) {
      std::vector<std::vector<uint16_t>> values;
      std::vector<const void*> data;
      for (size_t i = 0; i < inputs; ++i) values.push_back(some(type(), elements, static_cast<uint32_t>(i)));
      for (const auto& each : values) data.push_back(each.data());
      for (const Reduction reduction : kAll) {
        for (const bool stream : {false, true}) {
          std::vector<uint16_t> out(elements);
          combine(reduction, type(), data, out.data(), 0, static_cast<int64_t>(elements), stream);
          stream_fence();
          for (size_t e = 0; e < elements; ++e) {
            float total = as_float(type(), values[0][e]);
            for (size_t i = 1; i < inputs; ++i) total = one_step(reduction, total, as_float(type(), values[i][e]));
            if (std::isnan(total)) {
              ASSERT_TRUE(is_nan(type(), out[e])) << e;
            } else {
              ASSERT_EQ(out[e], as_half(type(), total)) << inputs << " inputs, element " << e;
            }
          }
        }
      }
    }
  }
}

TEST_P(HalvesOnEachSet, FoldsToTheSameBitsOnEveryInstructionSet) {
  struct Shape {
    int64_t outer, reduced, inner;
  };
  for (const auto& [outer, reduced, inner] :
       {Shape{3, 1, 1}, Shape{2, 63, 1}, Shape{2, 64, 1}, Shape{2, 65, 1}, Shape{1, 4096, 1}, Shape{1, 9999, 1},
        Shape{2, 1, 5}, Shape{2, 9, 5}, Shape{1, 3001, 7}, Shape{2, 17, 4096}, Shape{1, 5, 9000}}) {
    std::vector<uint16_t> values = some(type(), static_cast<size_t>(outer * reduced * inner), 3);
    // Small whole numbers: their sums are exact in any order.
    for (uint16_t& bits : values) {
      if (!is_nan(type(), bits)) bits = as_half(type(), std::round(as_float(type(), bits)));
    }
    for (const Reduction reduction : kAll) {
      if (reduction == Reduction::kProduct) {  // and of ones, twos and halves the products are
        for (size_t i = 0; i < values.size(); ++i)
          values[i] = as_half(type(), i % 9 == 0 ? 2.F : i % 9 == 5 ? 0.5F : 1.F);
      }
      std::vector<float> out(static_cast<size_t>(outer * inner));
      fold(reduction, type(), values.data(), outer, reduced, inner, out.data());
      for (int64_t o = 0; o < outer; ++o) {
        for (int64_t j = 0; j < inner; ++j) {
          const auto at = [&](int64_t r) {
            return as_float(type(), values[static_cast<size_t>((o * reduced + r) * inner + j)]);
          };
          float total = at(0);
          for (int64_t r = 1; r < reduced; ++r) total = one_step(reduction, total, at(r));
          const float got = out[static_cast<size_t>(o * inner + j)];
          if (std::isnan(total)) {
            ASSERT_TRUE(std::isnan(got)) << reduced << " " << inner;
          } else {
            ASSERT_EQ(got, total) << reduced << " " << inner << " element " << j;
          }
        }
      }
    }
    std::vector<float> random(values.size());
    std::mt19937 numbers(5);
    for (float& value : random) value = std::uniform_real_distribution<float>(-1, 1)(numbers);
    narrow(type(), random.data(), static_cast<int64_t>(random.size()), values.data());
    std::vector<float> here(static_cast<size_t>(outer * inner));
    std::vector<float> baseline(here.size());
    fold(Reduction::kSum, type(), values.data(), outer, reduced, inner, here.data());
    use(Isa::kBaseline);
    fold(Reduction::kSum, type(), values.data(), outer, reduced, inner, baseline.data());
    use(std::get<0>(GetParam()));
    EXPECT_EQ(here, baseline);
  }
}

TEST_P(HalvesOnEachSet, KeepsLongSumsAccurate) {
  // One after the other, float32 stops growing at 2^24: ones of 2^25 elements would give half of it.
  const std::vector<uint16_t> ones(size_t{1} << 25, as_half(type(), 1.F));
  float total = 0;
  fold(Reduction::kSum, type(), ones.data(), 1, static_cast<int64_t>(ones.size()), 1, &total);
  EXPECT_EQ(total, 33554432.F);
}

TEST_P(HalvesOnEachSet, KeepsSignedZerosAndInfinities) {
  const std::vector<uint16_t> zeros(70, as_half(type(), -0.F));
  float total = 1;
  fold(Reduction::kSum, type(), zeros.data(), 1, 70, 1, &total);
  EXPECT_TRUE(total == 0.F && std::signbit(total));
  const std::vector<uint16_t> low(70, as_half(type(), -kInfinity));
  fold(Reduction::kMax, type(), low.data(), 1, 70, 1, &total);
  EXPECT_EQ(total, -kInfinity);
  const std::vector<uint16_t> high(70, as_half(type(), kInfinity));
  fold(Reduction::kMin, type(), high.data(), 1, 70, 1, &total);
  EXPECT_EQ(total, kInfinity);
}

INSTANTIATE_TEST_SUITE_P(All, HalvesOnEachSet,
                         testing::Combine(testing::ValuesIn(supported_isas()),
                                          testing::Values(ArithmeticType::kFloat16, ArithmeticType::kBFloat16)),
                         [](const auto& set) {
                           return std::string(to_string(std::get<0>(set.param))) +
                                  (std::get<1>(set.param) == ArithmeticType::kFloat16 ? "_float16" : "_bfloat16");
                         });

}  // namespace
}  // namespace artifex_devices
