// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace artifex_devices {

/// Element types: NumPy's numbers, then those of ml_dtypes. Names are NumPy's (`np.dtype(x).name`).
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

/// Bytes of one element in memory; types under 8 bits take a byte each, as in ml_dtypes.
int64_t itemsize(DType dtype) noexcept;

std::string_view name(DType dtype) noexcept;

std::optional<DType> dtype_from_name(std::string_view name) noexcept;

/// The 32-bit type of a 64-bit one (complex64 for complex128); other types unchanged.
DType narrow_dtype(DType dtype) noexcept;

/// Whether the type comes from ml_dtypes and not from NumPy itself.
constexpr bool is_ml_dtype(DType dtype) noexcept { return dtype >= DType::kBFloat16; }

}  // namespace artifex_devices
