// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/reduction/exact_state.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace artifex_devices {
namespace {

constexpr uint64_t kLimbMask = 0xFFFF'FFFF;
constexpr uint64_t kFraction = (uint64_t{1} << 52) - 1;

using Magnitude = std::array<uint64_t, ExactState::kLimbs>;  // limbs of 32 bits

/// Divides in place; returns whether there is a remainder.
bool divide(Magnitude& limbs, uint64_t divisor) noexcept {
  __extension__ using Wide = unsigned __int128;
  uint64_t remainder = 0;
  for (auto limb = limbs.rbegin(); limb != limbs.rend(); ++limb) {
    if (remainder == 0 && *limb == 0) continue;
    if (divisor <= kLimbMask) {
      const uint64_t part = (remainder << 32) | *limb;
      *limb = part / divisor;
      remainder = part % divisor;
    } else {
      const Wide part = (static_cast<Wide>(remainder) << 32) | *limb;
      *limb = static_cast<uint64_t>(part / divisor);
      remainder = static_cast<uint64_t>(part % divisor);
    }
  }
  return remainder != 0;
}

/// Rounds the number window * 2^(exponent - 63) (the window's highest bit is set), and a bit more if `is_more`.
double rounded(uint64_t window, int exponent, bool is_more, const RoundingFormat& format) noexcept {
  const int kept_bits = std::min(format.precision, exponent - format.least_exponent + 1);
  const int last_exponent = exponent - kept_bits + 1;
  if (kept_bits < 0) return format.to_odd ? std::ldexp(1.0, format.least_exponent) : 0.0;
  const int dropped_bits = 64 - kept_bits;  // 11 to 64
  uint64_t kept = dropped_bits == 64 ? 0 : window >> dropped_bits;
  const uint64_t rest = kept_bits == 0 ? window : window << kept_bits;  // below the last bit, as a fraction of it
  constexpr uint64_t kHalf = uint64_t{1} << 63;
  if (format.to_odd) {
    if (rest != 0 || is_more) kept |= 1;
  } else if (rest > kHalf || (rest == kHalf && (is_more || (kept & 1) != 0))) {
    ++kept;
  }
  return std::ldexp(static_cast<double>(kept), last_exponent);
}

}  // namespace

void ExactState::add(double number) noexcept {
  const auto bits = std::bit_cast<uint64_t>(number);
  const auto biased = static_cast<int>((bits >> 52) & 0x7FF);
  uint64_t fraction = bits & kFraction;
  const bool is_negative = (bits >> 63) != 0;
  if (biased == 0x7FF) {
    positive_infinities += static_cast<int>(fraction != 0 || !is_negative);
    negative_infinities += static_cast<int>(fraction != 0 || is_negative);
    return;
  }
  if (biased == 0 && fraction == 0) {
    if (is_negative) {
      ++negative_zeros;
    } else {
      others = 1;
    }
    return;
  }
  others = 1;
  if (biased != 0) fraction |= uint64_t{1} << 52;
  const int place = std::max(biased, 1) - 1075 - kLeastExponent;  // of the fraction's last bit
  const auto limb = static_cast<size_t>(place / 32);
  const int shift = place % 32;
  const uint64_t low = fraction << shift;
  const uint64_t high = shift == 0 ? 0 : fraction >> (64 - shift);
  const auto add_signed = [is_negative](int64_t& to, uint64_t part) {
    to += is_negative ? -static_cast<int64_t>(part) : static_cast<int64_t>(part);
  };
  add_signed(limbs[limb], low & kLimbMask);
  add_signed(limbs[limb + 1], low >> 32);
  add_signed(limbs[limb + 2], high);
}

void ExactState::normalize() noexcept {
  int64_t carry = 0;
  for (size_t i = 0; i + 1 < kLimbs; ++i) {
    const int64_t limb = limbs[i] + carry;
    carry = limb >> 32;
    limbs[i] = static_cast<int64_t>(static_cast<uint64_t>(limb) & kLimbMask);
  }
  limbs[kLimbs - 1] += carry;
}

double ExactState::round(const RoundingFormat& format, int64_t divisor) const noexcept {
  if (positive_infinities != 0 || negative_infinities != 0) {
    if (negative_infinities == 0) return std::numeric_limits<double>::infinity();
    if (positive_infinities == 0) return -std::numeric_limits<double>::infinity();
    return std::numeric_limits<double>::quiet_NaN();
  }
  ExactState sum = *this;
  sum.normalize();
  const bool is_negative = sum.limbs[kLimbs - 1] < 0;
  if (is_negative) {
    for (int64_t& limb : sum.limbs) limb = -limb;
    sum.normalize();
  }
  Magnitude magnitude;
  std::ranges::transform(sum.limbs, magnitude.begin(), [](int64_t limb) { return static_cast<uint64_t>(limb); });
  bool is_more = divisor > 1 && divide(magnitude, static_cast<uint64_t>(divisor));
  size_t top = kLimbs;
  while (top > 0 && magnitude[top - 1] == 0) --top;
  if (top == 0) {  // a quotient below 2^-1088 rounds to zero too
    if (is_more)
      return is_negative ? -rounded(1, INT32_MIN / 2, true, format) : rounded(1, INT32_MIN / 2, true, format);
    return negative_zeros != 0 && others == 0 ? -0.0 : 0.0;
  }
  const auto limb_at = [&](size_t below) { return top > below ? magnitude[top - 1 - below] : 0; };
  const int zeros = std::countl_zero(static_cast<uint32_t>(limb_at(0)));
  uint64_t window = (limb_at(0) << 32) | limb_at(1);
  if (zeros > 0) window = (window << zeros) | (limb_at(2) >> (32 - zeros));
  is_more |= (limb_at(2) << zeros & kLimbMask) != 0;
  for (size_t below = 3; below < top && !is_more; ++below) is_more = limb_at(below) != 0;
  const int exponent = static_cast<int>(top) * 32 - 1 - zeros + kLeastExponent;
  const double size = rounded(window, exponent, is_more, format);
  return is_negative ? -size : size;
}

double round_to(double number, const RoundingFormat& format) noexcept {
  if (number == 0 || !std::isfinite(number)) return number;
  int exponent = 0;
  const double fraction = std::frexp(std::abs(number), &exponent);  // 1/2 to 1
  const auto window = static_cast<uint64_t>(std::ldexp(fraction, 64));
  return std::copysign(rounded(window, exponent - 1, false, format), number);
}

}  // namespace artifex_devices
