// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/reduction/exact_quotient.h"

#include <bit>
#include <cmath>
#include <limits>

namespace artifex_devices {
namespace {

// Quotients from here on have exact remainders, and their parts no subnormal numbers.
constexpr double kLeastQuotient = 0x1p-900;
constexpr double kGreatestQuotient = 0x1p1000;

/// Returns `number`, or its neighbour with an odd last bit if an error of this sign was rounded away. Rounding the
/// result to at least 2 bits fewer is correct.
double odd(double number, double error) noexcept {
  const auto bits = std::bit_cast<uint64_t>(number);
  if (error == 0 || (bits & 1) != 0) return number;
  return std::bit_cast<double>((error > 0) == (number > 0) ? bits + 1 : bits - 1);
}

/// Returns a double rounded to the format.
double rounded(double number, const RoundingFormat& format) noexcept {
  const bool is_float = format.precision == std::numeric_limits<float>::digits && !format.to_odd;
  return is_float ? static_cast<double>(static_cast<float>(number)) : round_to(number, format);
}

}  // namespace

std::optional<double> quotient(double sum, double rest, const RoundingFormat& format, int64_t divisor) noexcept {
  const bool is_double = format.precision == std::numeric_limits<double>::digits;
  if (divisor == 1 && rest == 0) return is_double ? sum : rounded(sum, format);
  const double total = sum + rest;
  const double size = std::abs(total);
  if (!(size >= kLeastQuotient && size <= kGreatestQuotient)) return std::nullopt;
  const double other = total - sum;
  const double error = (sum - (total - other)) + (rest - other);
  if (divisor == 1) return is_double ? total : rounded(odd(total, error), format);
  if (error != 0 || divisor >= (int64_t{1} << 53)) return std::nullopt;
  const auto by = static_cast<double>(divisor);
  const double result = total / by;
  if (std::abs(result) < kLeastQuotient) return std::nullopt;
  return is_double ? result : rounded(odd(result, std::fma(-result, by, total)), format);
}

}  // namespace artifex_devices
