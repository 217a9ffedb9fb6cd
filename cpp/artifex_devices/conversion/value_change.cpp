// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/conversion/value_change.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "artifex_devices/base/isa.h"

namespace artifex_devices {
namespace {

constexpr uint32_t kInfinity = 0x7f800000;
constexpr uint32_t kQuiet = 0x400000;  // bit of NaN
constexpr int64_t kAtOnce = 256;       // elements, in the first-level cache

using Floats = std::array<float, kAtOnce>;
using Codes = std::array<uint16_t, kAtOnce>;

// A format of 16 bits or fewer: a sign, then exponent and mantissa, as in float32.
struct FloatFormat {
  DType dtype;
  uint8_t mantissa;     // bits
  uint8_t bias;         // of the exponent
  uint16_t sign;        // bit
  uint16_t largest;     // code of the largest finite number
  uint16_t overflow;    // of what larger numbers become: infinity, NaN or the largest
  uint16_t nan;         // of what NaN becomes; ml_dtypes gives types without NaN the other zero
  uint16_t minus_zero;  // `sign`, or 0 for types in which the code of -0 is NaN
};

constexpr auto kFormats = std::to_array<FloatFormat>({
    {DType::kFloat16, 10, 15, 0x8000, 0x7bff, 0x7c00, 0x7e00, 0x8000},
    {DType::kBFloat16, 7, 127, 0x8000, 0x7f7f, 0x7f80, 0x7fc0, 0x8000},
    {DType::kFloat8E3M4, 4, 3, 0x80, 0x6f, 0x70, 0x78, 0x80},
    {DType::kFloat8E4M3, 3, 7, 0x80, 0x77, 0x78, 0x7c, 0x80},
    {DType::kFloat8E4M3B11FNUZ, 3, 11, 0x80, 0x7f, 0x80, 0x80, 0},
    {DType::kFloat8E4M3FN, 3, 7, 0x80, 0x7e, 0x7f, 0x7f, 0x80},
    {DType::kFloat8E4M3FNUZ, 3, 8, 0x80, 0x7f, 0x80, 0x80, 0},
    {DType::kFloat8E5M2, 2, 15, 0x80, 0x7b, 0x7c, 0x7e, 0x80},
    {DType::kFloat8E5M2FNUZ, 2, 16, 0x80, 0x7f, 0x80, 0x80, 0},
    {DType::kFloat6E2M3FN, 3, 1, 0x20, 0x1f, 0x1f, 0x20, 0x20},
    {DType::kFloat6E3M2FN, 2, 3, 0x20, 0x1f, 0x1f, 0x20, 0x20},
    {DType::kFloat4E2M1FN, 1, 1, 0x8, 0x7, 0x7, 0x8, 0x8},
});

const FloatFormat* format_of(DType dtype) noexcept {
  const auto found = std::ranges::find(kFormats, dtype, &FloatFormat::dtype);
  return found == kFormats.end() ? nullptr : &*found;
}

float as_float(uint32_t bits) noexcept { return std::bit_cast<float>(bits); }
uint32_t as_bits(float value) noexcept { return std::bit_cast<uint32_t>(value); }

// The compiler makes branches of other conditions on products and sums, and then uses no SIMD registers.
uint32_t chosen(bool condition, uint32_t yes, uint32_t no) noexcept {
  const uint32_t mask = 0U - static_cast<uint32_t>(condition);
  return (yes & mask) | (no & ~mask);
}

[[gnu::always_inline]] inline void widen_all(const FloatFormat& format, const Codes& from, Floats& to) noexcept {
  const int shift = 23 - format.mantissa;
  const int sign_shift = 32 - std::bit_width(format.sign);
  const uint32_t rebias = static_cast<uint32_t>(127 - format.bias) << 23;
  const uint32_t smallest = rebias + (1U << 23);  // normal number
  const uint32_t sign = format.sign;
  const uint32_t largest = format.largest;
  const uint32_t infinity = format.overflow == format.nan ? 0 : format.overflow;
  const uint32_t zero = format.minus_zero == 0 ? sign : 0x10000;  // the code of NaN with the magnitude of 0
  for (size_t i = 0; i < from.size(); ++i) {
    const uint32_t code = from[i];
    const uint32_t magnitude = code & (sign - 1);
    const uint32_t digits = magnitude << shift;
    const uint32_t small = as_bits(as_float(digits + smallest) - as_float(smallest));
    const uint32_t finite = chosen(digits < 1U << 23, small, digits + rebias);
    const uint32_t payload = chosen(magnitude == infinity, 0, kQuiet | digits);
    const uint32_t number = chosen(magnitude > largest, kInfinity | payload, finite) | (code & sign) << sign_shift;
    to[i] = as_float(chosen(code == zero, ~0U << 22, number));
  }
}

[[gnu::always_inline]] inline void narrow_all(const FloatFormat& format, const Floats& from, Codes& to) noexcept {
  const FloatFormat f = format;
  const int shift = 23 - f.mantissa;
  const int sign_shift = std::bit_width(f.sign) - 1;
  const uint32_t half = (1U << (shift - 1)) - 1;
  const uint32_t rebias = static_cast<uint32_t>(127 - f.bias) << f.mantissa;
  const uint32_t smallest = static_cast<uint32_t>(128 - f.bias) << 23;  // normal number
  // Its last bit is the smallest subnormal number, so a sum with it is rounded as a subnormal number is.
  const float rounder = as_float(static_cast<uint32_t>(128 - f.bias + shift) << 23);
  for (size_t i = 0; i < from.size(); ++i) {
    const uint32_t bits = as_bits(from[i]);
    const uint32_t magnitude = bits & 0x7fffffff;
    const uint32_t normal = ((magnitude + half + (magnitude >> shift & 1)) >> shift) - rebias;
    const uint32_t small = as_bits(as_float(magnitude) + rounder) - as_bits(rounder);
    uint32_t code = chosen(magnitude < smallest, small, normal);
    code = chosen(code > f.largest, f.overflow, code);
    code = chosen(magnitude > kInfinity, f.nan, code);
    const uint32_t sign = bits >> 31 << sign_shift;
    to[i] = static_cast<uint16_t>(code ^ chosen((code & (f.sign - 1U)) != 0, sign, sign & f.minus_zero));
  }
}

void widen_baseline(const FloatFormat& format, const Codes& from, Floats& to) noexcept { widen_all(format, from, to); }
void narrow_baseline(const FloatFormat& format, const Floats& from, Codes& to) noexcept {
  narrow_all(format, from, to);
}

// Twice as fast as the baseline. Two short functions do not need a file of their own with options of the compiler.
#if defined(__x86_64__)
[[gnu::target("avx2")]] void widen_avx2(const FloatFormat& format, const Codes& from, Floats& to) noexcept {
  widen_all(format, from, to);
}
[[gnu::target("avx2")]] void narrow_avx2(const FloatFormat& format, const Floats& from, Codes& to) noexcept {
  narrow_all(format, from, to);
}
constexpr auto* widen_avx512 = &widen_avx2;
constexpr auto* narrow_avx512 = &narrow_avx2;
#endif

void widen(const FloatFormat& format, const Codes& from, Floats& to) noexcept {
  ARTIFEX_VARIANT(decltype(&widen_baseline), active_isa(), widen)(format, from, to);
}

void narrow(const FloatFormat& format, const Floats& from, Codes& to) noexcept {
  ARTIFEX_VARIANT(decltype(&narrow_baseline), active_isa(), narrow)(format, from, to);
}

void load(DType dtype, const std::byte* from, int64_t count, Floats& to) noexcept {
  const FloatFormat* format = format_of(dtype);
  if (format == nullptr) {
    std::memcpy(to.data(), from, static_cast<size_t>(count) * sizeof(float));
    return;
  }
  Codes codes{};
  if (itemsize(dtype) == 2) {
    std::memcpy(codes.data(), from, static_cast<size_t>(count) * sizeof(uint16_t));
  } else {
    std::array<uint8_t, kAtOnce> bytes{};
    std::memcpy(bytes.data(), from, static_cast<size_t>(count));
    for (size_t i = 0; i < codes.size(); ++i) codes[i] = bytes[i];
  }
  widen(*format, codes, to);
}

void store(DType dtype, const Floats& from, int64_t count, std::byte* to) noexcept {
  const FloatFormat* format = format_of(dtype);
  if (format == nullptr) {
    std::memcpy(to, from.data(), static_cast<size_t>(count) * sizeof(float));
    return;
  }
  Codes codes{};
  narrow(*format, from, codes);
  if (itemsize(dtype) == 2) {
    std::memcpy(to, codes.data(), static_cast<size_t>(count) * sizeof(uint16_t));
    return;
  }
  std::array<uint8_t, kAtOnce> bytes;
  for (size_t i = 0; i < codes.size(); ++i) bytes[i] = static_cast<uint8_t>(codes[i]);
  std::memcpy(to, bytes.data(), static_cast<size_t>(count));
}

bool is_in_float32(DType dtype) noexcept { return dtype == DType::kFloat32 || format_of(dtype) != nullptr; }

}  // namespace

bool can_change_values(DType dtype, const std::vector<ValueChange>& changes) noexcept {
  return is_in_float32(dtype) && std::ranges::all_of(changes, [](const ValueChange& change) {
           return !change.cast || is_in_float32(*change.cast);
         });
}

void change_values(DType dtype, const std::vector<ValueChange>& changes, int64_t count, const std::byte* from,
                   std::byte* to) {
  DType last = dtype;
  for (const ValueChange& change : changes) last = change.cast.value_or(last);
  Floats floats{};
  std::array<std::byte, sizeof(Floats)> rounded;
  for (int64_t done = 0; done < count; done += kAtOnce) {
    const int64_t now = std::min(kAtOnce, count - done);
    load(dtype, from + done * itemsize(dtype), now, floats);
    DType current = dtype;
    for (size_t i = 0; i < changes.size(); ++i) {
      if (i > 0) {
        store(current, floats, now, rounded.data());
        load(current, rounded.data(), now, floats);
      }
      if (changes[i].cast) {
        current = *changes[i].cast;
        continue;
      }
      for (float& value : floats) value *= static_cast<float>(changes[i].factor);
    }
    store(last, floats, now, to + done * itemsize(last));
  }
}

}  // namespace artifex_devices
