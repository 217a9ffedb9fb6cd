// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace artifex_devices {

/// A short list of 64-bit numbers, one for each dimension, major to minor: a shape, an index, strides, mesh sizes. Up
/// to six dimensions are stored inside the object without an allocation.
class Dims {
 public:
  static constexpr int kInline = 6;

  Dims() noexcept = default;
  explicit Dims(int64_t count, int64_t value) { resize(count, value); }
  Dims(std::initializer_list<int64_t> values) : Dims(std::span<const int64_t>(values.begin(), values.size())) {}
  explicit Dims(std::span<const int64_t> values) {
    resize(static_cast<int64_t>(values.size()), 0);
    std::copy(values.begin(), values.end(), data());
  }
  Dims(const Dims& other) { copy(other); }
  Dims(Dims&& other) noexcept { take(other); }
  Dims& operator=(const Dims& other) {
    if (this != &other) copy(other);
    return *this;
  }
  Dims& operator=(Dims&& other) noexcept {
    if (this != &other) {
      delete[] heap_;
      take(other);
    }
    return *this;
  }
  ~Dims() { delete[] heap_; }

  int64_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  int64_t* data() noexcept { return heap_ ? heap_ : inline_; }
  const int64_t* data() const noexcept { return heap_ ? heap_ : inline_; }
  int64_t* begin() noexcept { return data(); }
  int64_t* end() noexcept { return data() + size_; }
  const int64_t* begin() const noexcept { return data(); }
  const int64_t* end() const noexcept { return data() + size_; }
  int64_t& operator[](int64_t i) noexcept { return data()[i]; }
  int64_t operator[](int64_t i) const noexcept { return data()[i]; }
  int64_t back() const noexcept { return data()[size_ - 1]; }
  std::span<const int64_t> span() const noexcept { return {data(), static_cast<size_t>(size_)}; }

  void push_back(int64_t value) {
    resize(size_ + 1, value);
    data()[size_ - 1] = value;
  }
  /// Keeps the first min(old, new) values; new ones are `value`.
  void resize(int64_t count, int64_t value);

  friend bool operator==(const Dims& a, const Dims& b) noexcept { return std::ranges::equal(a.span(), b.span()); }
  friend std::strong_ordering operator<=>(const Dims& a, const Dims& b) noexcept {
    return std::lexicographical_compare_three_way(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  void copy(const Dims& other) {
    if (heap_ || other.heap_) {
      resize(other.size(), 0);
      std::copy(other.begin(), other.end(), data());
    } else {
      size_ = other.size_;
      std::copy(other.inline_, other.inline_ + kInline, inline_);
    }
  }
  void take(Dims& other) noexcept {
    size_ = other.size_;
    capacity_ = other.capacity_;
    heap_ = other.heap_;
    std::copy(other.inline_, other.inline_ + kInline, inline_);
    other.heap_ = nullptr;
    other.size_ = 0;
    other.capacity_ = kInline;
  }

  int64_t* heap_ = nullptr;
  int32_t size_ = 0;
  int32_t capacity_ = kInline;
  int64_t inline_[kInline] = {};
};

/// a * b, or nothing on overflow of 64 bits.
std::optional<int64_t> checked_mul(int64_t a, int64_t b) noexcept;
std::optional<int64_t> checked_add(int64_t a, int64_t b) noexcept;

/// The product of all sizes (1 for no dimension). Throws InvalidArgument, naming `operation` and the dims, when a size
/// is negative or the product does not fit 63 bits.
int64_t checked_product(const Dims& dims, std::string_view operation);

/// Strides in bytes of a dense row-major array. `shape` must have passed `checked_bytes` (base/byte_count.h).
/// Example: row_major_strides({2, 3}, 4) is {12, 4}.
Dims row_major_strides(const Dims& shape, int64_t itemsize);

/// Returns whether memory of a checked shape is dense and row-major; strides of dimensions with one element are
/// ignored.
inline bool is_dense(const Dims& shape, const Dims& byte_strides, int64_t itemsize) noexcept {
  int64_t expected = itemsize;
  bool dense = true;
  for (int64_t d = shape.size() - 1; d >= 0; --d) {
    if (shape[d] == 0) return true;
    dense = dense && (shape[d] == 1 || byte_strides[d] == expected);
    expected *= shape[d];
  }
  return dense;
}

/// Formats like a Python tuple: "()", "(8,)", "(8, 16)".
std::string to_string(const Dims& dims);

size_t hash_value(const Dims& dims) noexcept;

/// Mixes a value into a running hash.
constexpr size_t hash_mix(size_t seed, size_t value) noexcept {
  value *= 0x9E3779B97F4A7C15ull;
  value ^= value >> (sizeof(value) * 4);
  return (seed ^ value) * 0xFF51AFD7ED558CCDull + 0x2545F4914F6CDD1Dull;
}

}  // namespace artifex_devices
