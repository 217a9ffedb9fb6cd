// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

namespace artifex_devices {

/// A floating-point format to round to: bits of a significand, and the exponent of the least subnormal number.
/// `to_odd` sets the last bit of an inexact result, so that rounding it again to 2 or more bits fewer is correct.
struct RoundingFormat {
  int precision = 53;
  int least_exponent = -1074;
  bool to_odd = false;
};

/// The exact sum of up to 2^63 doubles: an integer multiple of 2^-1088 in limbs of 32 bits, as the small
/// superaccumulator of R. Neal, "Fast exact summation using small and large superaccumulators" (2015). All members are
/// integers that add up, so the sum of two states is the state of all their numbers, in whatever order they come.
///
/// Example: 1e308, 1, -1e308 and 2^-1074 add up to 1 + 2^-1074, which rounds to 1.
struct ExactState {
  static constexpr int kLimbs = 68;
  static constexpr int kLeastExponent = -1088;  // of bit 0 of limbs[0]
  // Numbers that may be added before `normalize` is due; each changes a limb by less than 2^32.
  static constexpr int64_t kMostAdditions = int64_t{1} << 30;

  std::array<int64_t, kLimbs> limbs = {};
  int64_t positive_infinities = 0;  // a NaN counts as both infinities
  int64_t negative_infinities = 0;
  int64_t negative_zeros = 0;
  int64_t others = 0;  // not 0 if a number was not -0.0

  /// Adds a number, which may be infinite or NaN.
  void add(double number) noexcept;

  /// Carries, so that limbs[0] .. limbs[66] are between 0 and 2^32 - 1: equal sums have equal limbs.
  void normalize() noexcept;

  /// Returns the sum divided by `divisor`, which is positive, rounded once to the nearest number of the format, ties to
  /// even. Numbers beyond the largest double are infinite. A sum of zero is -0.0 only if all numbers are -0.0.
  double round(const RoundingFormat& format, int64_t divisor = 1) const noexcept;
};

/// Returns a double rounded to the format; infinities and NaN unchanged.
double round_to(double number, const RoundingFormat& format) noexcept;

inline constexpr int64_t kExactWords = sizeof(ExactState) / sizeof(int64_t);

}  // namespace artifex_devices
