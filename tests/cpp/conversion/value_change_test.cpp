// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/conversion/value_change.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "artifex_devices/base/isa.h"

namespace artifex_devices {
namespace {

class ValueChangeOnEachSet : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override { set_active_isa(to_string(GetParam()), "test"); }
  void TearDown() override { set_active_isa(to_string(supported_isas().back()), "test"); }
};

template <class To, class From>
std::vector<To> cast(DType from, DType to, const std::vector<From>& values) {
  std::vector<To> made(values.size());
  change_values(from, {{to, 1}}, static_cast<int64_t>(values.size()), reinterpret_cast<const std::byte*>(values.data()),
                reinterpret_cast<std::byte*>(made.data()));
  return made;
}

// Python's tests compare all pairs of types with ml_dtypes on the best instruction set.
TEST_P(ValueChangeOnEachSet, AllValuesOfSixteenBitsComeBackFromFloat32) {
  std::vector<uint16_t> codes(1 << 16);
  for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<uint16_t>(i);
  for (const DType dtype : {DType::kBFloat16, DType::kFloat16}) {
    const std::vector<float> wide = cast<float>(dtype, DType::kFloat32, codes);
    const std::vector<uint16_t> back = cast<uint16_t>(DType::kFloat32, dtype, wide);
    for (size_t i = 0; i < codes.size(); ++i) {
      const uint16_t quiet = dtype == DType::kBFloat16 ? 0x7fc0 : 0x7e00;
      ASSERT_EQ(back[i], std::isnan(wide[i]) ? quiet | (codes[i] & 0x8000) : codes[i]) << name(dtype);
    }
  }
}

TEST_P(ValueChangeOnEachSet, RoundsHalfwayToEvenAndOverflowsAsTheType) {
  const std::vector<float> values = {1, 17, 19, -17, 464, 465, 0.0009765625F, 0.00097656256F, -0.0F, INFINITY};
  EXPECT_EQ(cast<uint8_t>(DType::kFloat32, DType::kFloat8E4M3FN, values),
            (std::vector<uint8_t>{0x38, 0x58, 0x5a, 0xd8, 0x7e, 0x7f, 0x00, 0x01, 0x80, 0x7f}));
  EXPECT_EQ(cast<uint8_t>(DType::kFloat32, DType::kFloat8E5M2FNUZ, std::vector<float>{1, -0.0F, NAN, 57344, 65536}),
            (std::vector<uint8_t>{0x40, 0x00, 0x80, 0x7f, 0x80}));
}

TEST_P(ValueChangeOnEachSet, EachProductIsRounded) {
  const std::vector<float> values(1000, 1);
  std::vector<uint16_t> made(values.size());
  change_values(DType::kFloat32, {{DType::kBFloat16, 1}, {{}, 1.00390625}, {{}, 1.00390625}}, 1000,
                reinterpret_cast<const std::byte*>(values.data()), reinterpret_cast<std::byte*>(made.data()));
  EXPECT_EQ(made, std::vector<uint16_t>(1000, 0x3f80));  // 1 + 2^-8 lies halfway between 1 and 1 + 2^-7
}

INSTANTIATE_TEST_SUITE_P(Sets, ValueChangeOnEachSet, testing::ValuesIn(supported_isas()),
                         [](const auto& test) { return std::string(to_string(test.param)); });

}  // namespace
}  // namespace artifex_devices
