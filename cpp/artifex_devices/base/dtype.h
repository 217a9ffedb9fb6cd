// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace artifex_devices {

/// Element types: NumPy's numbers, then numbers of ml_dtypes.
enum class DType : uint8_t {
  kBool,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUInt8,
  kUInt16,
  kUInt32,
  kUInt64,
  kFloat16,
  kFloat32,
  kFloat64,
  kComplex64,
  kComplex128,
  kBFloat16,
  kFloat8E3M4,
  kFloat8E4M3,
  kFloat8E4M3B11FNUZ,
  kFloat8E4M3FN,
  kFloat8E4M3FNUZ,
  kFloat8E5M2,
  kFloat8E5M2FNUZ,
  kFloat8E8M0FNU,
  kFloat6E2M3FN,
  kFloat6E3M2FN,
  kFloat4E2M1FN,
  kInt2,
  kInt4,
  kUInt2,
  kUInt4,
};
inline constexpr int kDTypeCount = 30;

enum class NumberKind : uint8_t { kBool, kInt, kUInt, kFloat, kComplex };

/// Numbers by how they are added: each width of integers and floats, and floats of 16 bits, which add up in float32 and
/// are rounded once.
enum class ArithmeticType : uint8_t {
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUInt8,
  kUInt16,
  kUInt32,
  kUInt64,
  kFloat32,
  kFloat64,
  kFloat16,
  kBFloat16,
};

/// Properties of a dtype. A new dtype is added only here.
struct DTypeRow {
  DType dtype;
  std::string_view name;  // NumPy's, which texts and manifests use: `np.dtype(x).name`
  NumberKind kind;
  int bits;                                  // of one number; types under 8 bits take a byte each, as in ml_dtypes
  std::optional<ArithmeticType> arithmetic;  // of the parts of complex numbers; of bool only for max and min
  int numpy_number;                          // NumPy's type number; -1 for types of ml_dtypes, which it registers late
  const char* buffer_format;                 // of the struct module; null for types that it lacks
  uint8_t dlpack_code;                       // `bits` are DLPack's too
  std::string_view safetensors;              // empty for types that safetensors files lack
  bool is_saved;                             // as that type: readers of other packages do not know them all
};

// clang-format off
// In the order of DType.
inline constexpr std::array<DTypeRow, kDTypeCount> kDTypes = [] {
  using enum DType;
  using K = NumberKind;
  using T = ArithmeticType;
  return std::array<DTypeRow, kDTypeCount>{{
    {kBool,              "bool",               K::kBool,      8, T::kUInt8,     0, "?",   6, "BOOL",        true},
    {kInt8,              "int8",               K::kInt,       8, T::kInt8,      1, "b",   0, "I8",          true},
    {kInt16,             "int16",              K::kInt,      16, T::kInt16,     3, "h",   0, "I16",         true},
    {kInt32,             "int32",              K::kInt,      32, T::kInt32,     5, "i",   0, "I32",         true},
    {kInt64,             "int64",              K::kInt,      64, T::kInt64,     7, "l",   0, "I64",         true},
    {kUInt8,             "uint8",              K::kUInt,      8, T::kUInt8,     2, "B",   1, "U8",          true},
    {kUInt16,            "uint16",             K::kUInt,     16, T::kUInt16,    4, "H",   1, "U16",         true},
    {kUInt32,            "uint32",             K::kUInt,     32, T::kUInt32,    6, "I",   1, "U32",         true},
    {kUInt64,            "uint64",             K::kUInt,     64, T::kUInt64,    8, "L",   1, "U64",         true},
    {kFloat16,           "float16",            K::kFloat,    16, T::kFloat16,  23, "e",   2, "F16",         true},
    {kFloat32,           "float32",            K::kFloat,    32, T::kFloat32,  11, "f",   2, "F32",         true},
    {kFloat64,           "float64",            K::kFloat,    64, T::kFloat64,  12, "d",   2, "F64",         true},
    {kComplex64,         "complex64",          K::kComplex,  64, T::kFloat32,  14, "Zf",  5, "C64",         false},
    {kComplex128,        "complex128",         K::kComplex, 128, T::kFloat64,  15, "Zd",  5, "",            false},
    {kBFloat16,          "bfloat16",           K::kFloat,    16, T::kBFloat16, -1, {},    4, "BF16",        true},
    {kFloat8E3M4,        "float8_e3m4",        K::kFloat,     8, {},           -1, {},    7, "",            false},
    {kFloat8E4M3,        "float8_e4m3",        K::kFloat,     8, {},           -1, {},    8, "",            false},
    {kFloat8E4M3B11FNUZ, "float8_e4m3b11fnuz", K::kFloat,     8, {},           -1, {},    9, "",            false},
    {kFloat8E4M3FN,      "float8_e4m3fn",      K::kFloat,     8, {},           -1, {},   10, "F8_E4M3",     true},
    {kFloat8E4M3FNUZ,    "float8_e4m3fnuz",    K::kFloat,     8, {},           -1, {},   11, "F8_E4M3FNUZ", false},
    {kFloat8E5M2,        "float8_e5m2",        K::kFloat,     8, {},           -1, {},   12, "F8_E5M2",     true},
    {kFloat8E5M2FNUZ,    "float8_e5m2fnuz",    K::kFloat,     8, {},           -1, {},   13, "F8_E5M2FNUZ", false},
    {kFloat8E8M0FNU,     "float8_e8m0fnu",     K::kFloat,     8, {},           -1, {},   14, "F8_E8M0",     false},
    {kFloat6E2M3FN,      "float6_e2m3fn",      K::kFloat,     6, {},           -1, {},   15, "",            false},
    {kFloat6E3M2FN,      "float6_e3m2fn",      K::kFloat,     6, {},           -1, {},   16, "",            false},
    {kFloat4E2M1FN,      "float4_e2m1fn",      K::kFloat,     4, {},           -1, {},   17, "",            false},
    {kInt2,              "int2",               K::kInt,       2, {},           -1, {},    0, "",            false},
    {kInt4,              "int4",               K::kInt,       4, {},           -1, {},    0, "",            false},
    {kUInt2,             "uint2",              K::kUInt,      2, {},           -1, {},    1, "",            false},
    {kUInt4,             "uint4",              K::kUInt,      4, {},           -1, {},    1, "",            false},
  }};
}();
// clang-format on
static_assert([] {
  for (int i = 0; i < kDTypeCount; ++i) {
    if (kDTypes[static_cast<size_t>(i)].dtype != static_cast<DType>(i)) return false;
  }
  return true;
}());

constexpr const DTypeRow& row_of(DType dtype) noexcept { return kDTypes[static_cast<size_t>(dtype)]; }

/// Bytes of one element in memory.
constexpr int64_t itemsize(DType dtype) noexcept { return (row_of(dtype).bits + 7) / 8; }

constexpr std::string_view name(DType dtype) noexcept { return row_of(dtype).name; }

constexpr bool is_complex(DType dtype) noexcept { return row_of(dtype).kind == NumberKind::kComplex; }

/// Whether the type comes from ml_dtypes and not from NumPy itself.
constexpr bool is_ml_dtype(DType dtype) noexcept { return row_of(dtype).numpy_number < 0; }

std::optional<DType> dtype_from_name(std::string_view name) noexcept;

/// The 32-bit type of a 64-bit one (complex64 for complex128); other types unchanged.
DType narrow_dtype(DType dtype) noexcept;

}  // namespace artifex_devices
