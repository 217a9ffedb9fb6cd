// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/hlo/array_shape.h"

#include <array>

#include "artifex_devices/base/dtype.h"
#include "artifex_devices/hlo/text_scan.h"

namespace artifex_devices::hlo {
namespace {

constexpr size_t kMostDims = 64;

struct ElementType {
  std::string_view hlo, mlir, dtype;
};

constexpr std::array<ElementType, 28> kElementTypes = {{
    {"pred", "i1", "bool"},
    {"s2", "si2", "int2"},
    {"s4", "i4", "int4"},
    {"s8", "i8", "int8"},
    {"s16", "i16", "int16"},
    {"s32", "i32", "int32"},
    {"s64", "i64", "int64"},
    {"u2", "ui2", "uint2"},
    {"u4", "ui4", "uint4"},
    {"u8", "ui8", "uint8"},
    {"u16", "ui16", "uint16"},
    {"u32", "ui32", "uint32"},
    {"u64", "ui64", "uint64"},
    {"f16", "f16", "float16"},
    {"bf16", "bf16", "bfloat16"},
    {"f32", "f32", "float32"},
    {"f64", "f64", "float64"},
    {"c64", "complex<f32>", "complex64"},
    {"c128", "complex<f64>", "complex128"},
    {"f8e3m4", "f8E3M4", "float8_e3m4"},
    {"f8e4m3", "f8E4M3", "float8_e4m3"},
    {"f8e4m3fn", "f8E4M3FN", "float8_e4m3fn"},
    {"f8e4m3b11fnuz", "f8E4M3B11FNUZ", "float8_e4m3b11fnuz"},
    {"f8e4m3fnuz", "f8E4M3FNUZ", "float8_e4m3fnuz"},
    {"f8e5m2", "f8E5M2", "float8_e5m2"},
    {"f8e5m2fnuz", "f8E5M2FNUZ", "float8_e5m2fnuz"},
    {"f8e8m0fnu", "f8E8M0FNU", "float8_e8m0fnu"},
    {"f4e2m1fn", "f4E2M1FN", "float4_e2m1fn"},
}};

/// Bytes of a shape; `packed_bits` of an element, or 0 for whole bytes.
std::optional<int64_t> bytes_of_shape(std::string_view dtype, const std::vector<int64_t>& dims, int64_t packed_bits) {
  const std::optional<DType> known = dtype_from_name(dtype);
  if (!known) return std::nullopt;
  int64_t count = 1;
  for (const int64_t size : dims) {
    if (size == 0) return 0;
    if (count > kLargestNumber / size) return std::nullopt;
    count *= size;
  }
  const int64_t bits = packed_bits ? packed_bits : itemsize(*known) * 8;
  if (count > kLargestNumber / bits) return std::nullopt;
  return (count * bits + 7) / 8;
}

ArrayShape shape_of(std::string_view dtype, std::vector<int64_t> dims, int64_t packed_bits) {
  const std::optional<int64_t> bytes = bytes_of_shape(dtype, dims, packed_bits);
  return {dtype, std::move(dims), bytes};
}

}  // namespace

std::string_view dtype_name(std::string_view element_type) noexcept {
  for (const ElementType& row : kElementTypes) {
    if (row.hlo == element_type || row.mlir == element_type) return row.dtype;
  }
  return {};
}

ArrayShape array_shape(std::string_view dtype, std::vector<int64_t> dims) {
  return shape_of(dtype, std::move(dims), 0);
}

std::vector<ArrayShape> arrays_in_shape(std::string_view shape) {
  std::vector<ArrayShape> arrays;
  for (size_t at = 0; at < shape.size();) {
    if (shape[at] == '/' && shape.substr(at, 2) == "/*") {
      const size_t end = shape.find("*/", at + 2);
      if (end == kNone) break;
      at = end + 2;
      continue;
    }
    if (!is_name_sign(shape[at])) {
      ++at;
      continue;
    }
    const size_t start = at;
    while (at < shape.size() && is_name_sign(shape[at])) ++at;
    const std::string_view type = shape.substr(start, at - start);
    if (at == shape.size() || shape[at] != '[') continue;  // a word that is not a shape
    const size_t close = shape.find(']', at);
    if (close == kNone) break;
    std::vector<int64_t> dims = numbers_in(shape.substr(at, close - at), kMostDims);
    at = close + 1;
    int64_t packed_bits = 0;
    if (at < shape.size() && shape[at] == '{') {
      const size_t end = end_of_brackets(shape, at);
      const std::string_view layout = shape.substr(at, end == kNone ? kNone : end - at);
      const size_t packed = layout.find("E(");
      if (packed != kNone) packed_bits = leading_number(layout.substr(packed + 2)).value_or(0);
      if (packed_bits > 128) packed_bits = 0;
      at = end == kNone ? shape.size() : end;
    }
    if (type != "token") arrays.push_back(shape_of(dtype_name(type), std::move(dims), packed_bits));
  }
  return arrays;
}

std::vector<ArrayShape> arrays_in_types(std::string_view types) {
  constexpr std::string_view kTensor = "tensor<";
  std::vector<ArrayShape> arrays;
  for (size_t at = types.find(kTensor); at != kNone; at = types.find(kTensor, at)) {
    at += kTensor.size();
    std::vector<int64_t> dims;
    bool is_dynamic = false;
    while (at < types.size() && (is_digit(types[at]) || types[at] == '?')) {
      const size_t start = at;
      while (at < types.size() && (is_digit(types[at]) || types[at] == '?')) ++at;
      if (at == types.size() || types[at] != 'x' || dims.size() == kMostDims) break;
      is_dynamic |= types[start] == '?';
      dims.push_back(types[start] == '?' ? 0 : leading_number(types.substr(start)).value_or(kLargestNumber));
      ++at;
    }
    const size_t start = at;
    while (at < types.size() && types[at] != '>' && types[at] != ',') ++at;
    std::string_view type = types.substr(start, at - start);
    if (type.starts_with("complex<")) type = types.substr(start, type.size() + 1);
    ArrayShape shape = shape_of(dtype_name(trimmed(type)), std::move(dims), 0);
    if (is_dynamic) shape.bytes.reset();
    arrays.push_back(std::move(shape));
  }
  return arrays;
}

std::optional<int64_t> bytes_of(const std::vector<ArrayShape>& arrays) noexcept {
  int64_t sum = 0;
  for (const ArrayShape& array : arrays) {
    if (!array.bytes || *array.bytes > kLargestNumber - sum) return std::nullopt;
    sum += *array.bytes;
  }
  return sum;
}

}  // namespace artifex_devices::hlo
