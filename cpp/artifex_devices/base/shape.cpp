// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/base/shape.h"

#include "artifex_devices/base/throw_error.h"

namespace artifex_devices {

void Dims::resize(int64_t count, int64_t value) {
  if (count > capacity_) {
    const int64_t capacity = std::max<int64_t>(count, int64_t{2} * capacity_);
    auto* grown = new int64_t[static_cast<size_t>(capacity)];
    std::copy(begin(), end(), grown);
    delete[] heap_;
    heap_ = grown;
    capacity_ = static_cast<int32_t>(capacity);
  }
  for (int64_t i = size_; i < count; ++i) data()[i] = value;
  size_ = static_cast<int32_t>(count);
}

std::optional<int64_t> checked_mul(int64_t a, int64_t b) noexcept {
  int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

std::optional<int64_t> checked_add(int64_t a, int64_t b) noexcept {
  int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

int64_t checked_product(const Dims& dims, std::string_view operation) {
  int64_t product = 1;
  bool overflow = false;
  bool zero = false;
  for (int64_t i = 0; i < dims.size(); ++i) {
    if (dims[i] < 0) {
      throw_error("{}: dimension {} of {} is {}; expected sizes of 0 or more; give the size itself, not -1", operation,
                  i, to_string(dims), dims[i]);
    }
    zero = zero || dims[i] == 0;
    overflow = overflow || __builtin_mul_overflow(product, dims[i], &product);
  }
  if (zero) return 0;
  if (overflow) {
    throw_error("{}: the product of the sizes {} does not fit 63 bits; expected at most {}; use smaller sizes",
                operation, to_string(dims), INT64_MAX);
  }
  return product;
}

Dims row_major_strides(const Dims& shape, int64_t itemsize) {
  Dims strides(shape.size(), itemsize);
  for (int64_t i = shape.size() - 2; i >= 0; --i) strides[i] = strides[i + 1] * std::max<int64_t>(shape[i + 1], 1);
  return strides;
}

std::string to_string(const Dims& dims) {
  return dims.size() == 1 ? fmt::format("({},)", dims[0]) : fmt::format("({})", fmt::join(dims.span(), ", "));
}

size_t hash_value(const Dims& dims) noexcept {
  size_t seed = static_cast<size_t>(dims.size());
  for (const int64_t value : dims) seed = hash_mix(seed, static_cast<size_t>(value));
  return seed;
}

}  // namespace artifex_devices
