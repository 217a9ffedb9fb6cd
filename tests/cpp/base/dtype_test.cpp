// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/base/dtype.h"

#include <gtest/gtest.h>

#include <set>
#include <string_view>

namespace artifex_devices {
namespace {

TEST(DType, RoundTripsThroughNames) {
  std::set<std::string_view> names;
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_EQ(dtype_from_name(name(dtype)), dtype) << name(dtype);
    names.insert(name(dtype));
  }
  EXPECT_EQ(names.size(), static_cast<size_t>(kDTypeCount));
}

TEST(DType, ListsAllTypes) {
  EXPECT_EQ(static_cast<int>(DType::kUInt4), kDTypeCount - 1);
  EXPECT_EQ(name(DType::kUInt4), "uint4");
}

TEST(DType, ReturnsNothingForUnknownNames) {
  for (const std::string_view bad : {"", "float", "Float32", "float32 ", "longdouble", "object", "datetime64[ns]"}) {
    EXPECT_EQ(dtype_from_name(bad), std::nullopt) << bad;
  }
}

TEST(DType, HasTheItemSizesOfNumPy) {
  struct Row {
    std::string_view name;
    int64_t itemsize;
  };
  for (const auto& [type_name, bytes] :
       {Row{"bool", 1}, Row{"int8", 1}, Row{"int16", 2}, Row{"int32", 4}, Row{"int64", 8}, Row{"uint8", 1},
        Row{"uint16", 2}, Row{"uint32", 4}, Row{"uint64", 8}, Row{"float16", 2}, Row{"float32", 4}, Row{"float64", 8},
        Row{"complex64", 8}, Row{"complex128", 16}, Row{"bfloat16", 2}, Row{"float8_e4m3fn", 1},
        Row{"float4_e2m1fn", 1}, Row{"int4", 1}}) {
    const auto dtype = dtype_from_name(type_name);
    ASSERT_TRUE(dtype.has_value()) << type_name;
    EXPECT_EQ(itemsize(*dtype), bytes) << type_name;
  }
}

TEST(DType, ListsMlDtypesAfterComplex128) {
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
