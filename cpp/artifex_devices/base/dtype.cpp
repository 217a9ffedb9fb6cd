// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/base/dtype.h"

#include <array>

namespace artifex_devices {
namespace {

struct Row {
  std::string_view name;
  int64_t itemsize;
};

// In the order of DType.
constexpr std::array<Row, kDTypeCount> kRows = {{
    {"bool", 1},           {"int8", 1},
    {"int16", 2},          {"int32", 4},
    {"int64", 8},          {"uint8", 1},
    {"uint16", 2},         {"uint32", 4},
    {"uint64", 8},         {"float16", 2},
    {"float32", 4},        {"float64", 8},
    {"complex64", 8},      {"complex128", 16},
    {"bfloat16", 2},       {"float8_e3m4", 1},
    {"float8_e4m3", 1},    {"float8_e4m3b11fnuz", 1},
    {"float8_e4m3fn", 1},  {"float8_e4m3fnuz", 1},
    {"float8_e5m2", 1},    {"float8_e5m2fnuz", 1},
    {"float8_e8m0fnu", 1}, {"float6_e2m3fn", 1},
    {"float6_e3m2fn", 1},  {"float4_e2m1fn", 1},
    {"int2", 1},           {"int4", 1},
    {"uint2", 1},          {"uint4", 1},
}};

}  // namespace

int64_t itemsize(DType dtype) noexcept { return kRows[static_cast<size_t>(dtype)].itemsize; }

std::string_view name(DType dtype) noexcept { return kRows[static_cast<size_t>(dtype)].name; }

std::optional<DType> dtype_from_name(std::string_view name) noexcept {
  for (size_t i = 0; i < kRows.size(); ++i) {
    if (kRows[i].name == name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

DType narrow_dtype(DType dtype) noexcept {
  switch (dtype) {
    case DType::kInt64:
      return DType::kInt32;
    case DType::kUInt64:
      return DType::kUInt32;
    case DType::kFloat64:
      return DType::kFloat32;
    case DType::kComplex128:
      return DType::kComplex64;
    default:
      return dtype;
  }
}

}  // namespace artifex_devices
