// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/base/dtype.h"

#include <algorithm>

namespace artifex_devices {

std::optional<DType> dtype_from_name(std::string_view name) noexcept {
  const auto* row = std::ranges::find(kDTypes, name, &DTypeRow::name);
  return row == kDTypes.end() ? std::nullopt : std::optional(row->dtype);
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
