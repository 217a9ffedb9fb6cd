// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/base/dtype.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <string_view>

namespace artifex_devices {
namespace {

class EveryDType : public testing::TestWithParam<DTypeRow> {};

TEST_P(EveryDType, IsFoundByItsName) {
  EXPECT_EQ(dtype_from_name(GetParam().name), GetParam().dtype);
  EXPECT_EQ(name(GetParam().dtype), GetParam().name);
}

TEST_P(EveryDType, HasANameThatSaysItsKindAndBits) {
  static const std::map<NumberKind, std::string> kWords = {{NumberKind::kBool, "bool"},
                                                           {NumberKind::kInt, "int"},
                                                           {NumberKind::kUInt, "uint"},
                                                           {NumberKind::kFloat, "float"},
                                                           {NumberKind::kComplex, "complex"}};
  const auto& [dtype, text, kind, bits, arithmetic, number, format, code, safetensors, is_saved] = GetParam();
  if (dtype == DType::kBool) {
    EXPECT_EQ(bits, 8);
  } else if (!is_ml_dtype(dtype)) {
    EXPECT_EQ(text, fmt::format("{}{}", kWords.at(kind), bits));
  } else if (dtype != DType::kBFloat16) {
    EXPECT_TRUE(text.starts_with(fmt::format("{}{}", kWords.at(kind), bits)));
  }
  EXPECT_EQ(itemsize(dtype), bits < 8 ? 1 : bits / 8);
  EXPECT_EQ(is_complex(dtype), kind == NumberKind::kComplex);
}

TEST_P(EveryDType, AddsUpInATypeOfItsKindAndWidth) {
  using Type = ArithmeticType;
  static const std::map<std::pair<NumberKind, int>, Type> kTypes = {
      {{NumberKind::kBool, 8}, Type::kUInt8},       {{NumberKind::kInt, 8}, Type::kInt8},
      {{NumberKind::kInt, 16}, Type::kInt16},       {{NumberKind::kInt, 32}, Type::kInt32},
      {{NumberKind::kInt, 64}, Type::kInt64},       {{NumberKind::kUInt, 8}, Type::kUInt8},
      {{NumberKind::kUInt, 16}, Type::kUInt16},     {{NumberKind::kUInt, 32}, Type::kUInt32},
      {{NumberKind::kUInt, 64}, Type::kUInt64},     {{NumberKind::kFloat, 16}, Type::kFloat16},
      {{NumberKind::kFloat, 32}, Type::kFloat32},   {{NumberKind::kFloat, 64}, Type::kFloat64},
      {{NumberKind::kComplex, 64}, Type::kFloat32}, {{NumberKind::kComplex, 128}, Type::kFloat64}};
  if (GetParam().dtype == DType::kBFloat16) {
    EXPECT_EQ(GetParam().arithmetic, Type::kBFloat16);
  } else if (is_ml_dtype(GetParam().dtype)) {
    EXPECT_EQ(GetParam().arithmetic, std::nullopt);
  } else {
    EXPECT_EQ(GetParam().arithmetic, kTypes.at({GetParam().kind, GetParam().bits}));
  }
}

TEST_P(EveryDType, HasABufferFormatIfItIsNumPys) {
  EXPECT_EQ(GetParam().buffer_format == nullptr, is_ml_dtype(GetParam().dtype));
}

TEST_P(EveryDType, HasTheDlpackCodeOfItsKind) {
  static const std::map<NumberKind, int> kCodes = {{NumberKind::kBool, 6},
                                                   {NumberKind::kInt, 0},
                                                   {NumberKind::kUInt, 1},
                                                   {NumberKind::kFloat, 2},
                                                   {NumberKind::kComplex, 5}};
  const int code = GetParam().dlpack_code;
  if (!is_ml_dtype(GetParam().dtype) || GetParam().kind != NumberKind::kFloat) {
    EXPECT_EQ(code, kCodes.at(GetParam().kind));
  } else {
    EXPECT_TRUE(code == 4 || code >= 7) << code;
  }
}

TEST_P(EveryDType, IsNamedInSafetensorsByItsKindAndBits) {
  const DTypeRow& row = GetParam();
  if (row.safetensors.empty()) {
    EXPECT_FALSE(row.is_saved);
  } else if (row.dtype == DType::kBool) {
    EXPECT_EQ(row.safetensors, "BOOL");
  } else if (row.bits == 8 && row.kind == NumberKind::kFloat) {
    EXPECT_TRUE(row.safetensors.starts_with("F8_E"));
  } else {
    const std::string_view letter = row.dtype == DType::kBFloat16      ? "BF"
                                    : row.kind == NumberKind::kInt     ? "I"
                                    : row.kind == NumberKind::kUInt    ? "U"
                                    : row.kind == NumberKind::kComplex ? "C"
                                                                       : "F";
    EXPECT_EQ(row.safetensors, fmt::format("{}{}", letter, row.bits));
  }
}

INSTANTIATE_TEST_SUITE_P(DType, EveryDType, testing::ValuesIn(kDTypes),
                         [](const auto& row) { return std::string(row.param.name); });

TEST(DType, HasNamesAndNumbersOfItsOwn) {
  std::set<std::string_view> names, formats, safetensors;
  std::set<std::pair<int, int>> codes;
  std::set<int> numbers;
  for (const DTypeRow& row : kDTypes) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_TRUE(codes.emplace(row.dlpack_code, row.bits).second) << row.name;
    EXPECT_TRUE(is_ml_dtype(row.dtype) || numbers.insert(row.numpy_number).second) << row.name;
    EXPECT_TRUE(row.buffer_format == nullptr || formats.insert(row.buffer_format).second) << row.name;
    EXPECT_TRUE(row.safetensors.empty() || safetensors.insert(row.safetensors).second) << row.name;
  }
}

TEST(DType, ReturnsNothingForUnknownNames) {
  for (const std::string_view bad : {"", "float", "Float32", "float32 ", "longdouble", "object", "datetime64[ns]"}) {
    EXPECT_EQ(dtype_from_name(bad), std::nullopt) << bad;
  }
}

TEST(DType, KnowsTheTypesOfMlDtypes) {
  EXPECT_FALSE(is_ml_dtype(DType::kBool));
  EXPECT_FALSE(is_ml_dtype(DType::kComplex128));
  EXPECT_TRUE(is_ml_dtype(DType::kBFloat16));
  EXPECT_TRUE(is_ml_dtype(DType::kUInt4));
}

TEST(DType, NarrowsTypesOf64BitsOnly) {
  EXPECT_EQ(narrow_dtype(DType::kInt64), DType::kInt32);
  EXPECT_EQ(narrow_dtype(DType::kUInt64), DType::kUInt32);
  EXPECT_EQ(narrow_dtype(DType::kFloat64), DType::kFloat32);
  EXPECT_EQ(narrow_dtype(DType::kComplex128), DType::kComplex64);
  for (const DType dtype : {DType::kBool, DType::kInt32, DType::kFloat16, DType::kComplex64, DType::kInt4}) {
    EXPECT_EQ(narrow_dtype(dtype), dtype);
  }
}

}  // namespace
}  // namespace artifex_devices
