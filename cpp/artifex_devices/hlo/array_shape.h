// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace artifex_devices::hlo {

/// One array of a shape in HLO or MLIR text.
struct ArrayShape {
  std::string_view dtype;        // NumPy's or ml_dtypes' name; empty for tokens and types that are not known
  std::vector<int64_t> dims;     // upper bounds of dynamic dimensions
  std::optional<int64_t> bytes;  // nothing where the type is not known or the size exceeds 2^62
};

/// NumPy's name of an element type of HLO ("bf16") or MLIR ("ui8", "i1", "f8E4M3FN"); empty if not known.
std::string_view dtype_name(std::string_view element_type) noexcept;

/// An array of whole bytes for each element.
ArrayShape array_shape(std::string_view dtype, std::vector<int64_t> dims);

/// The arrays of a shape in HLO text, tuples flattened: "(f32[2]{0}, s32[])" has two. Layouts are ignored, except that
/// `E(4)` packs elements of fewer bits than a byte.
std::vector<ArrayShape> arrays_in_shape(std::string_view shape);

/// The arrays of a list of types in MLIR text: "tensor<2x3xf32>, tensor<i32>".
std::vector<ArrayShape> arrays_in_types(std::string_view types);

/// The sum of the bytes, or nothing where those of an array are not known.
std::optional<int64_t> bytes_of(const std::vector<ArrayShape>& arrays) noexcept;

}  // namespace artifex_devices::hlo
