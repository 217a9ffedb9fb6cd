// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace artifex_devices {

/// Three digits with an SI prefix: 4.5e+10 is "45 G". Above 999 exa and below 1, scientific notation.
std::string si_text(double value);

/// A logarithmic axis from one power of ten to another that covers the given values.
/// Example: for 3 and 240, pixels 0 to 300: from 1 to 1000, 10 at pixel 100.
class LogAxis {
 public:
  /// `values` must be finite, above 0 and not empty. `begin` and `end` are pixels.
  LogAxis(const std::vector<double>& values, double begin, double end);

  double low() const noexcept { return low_; }
  double high() const noexcept { return high_; }
  double pixel(double value) const noexcept;
  /// At most 11 powers of ten; on longer axes every second, third, ... power.
  std::vector<double> ticks() const;

 private:
  int first_ = 0;  // exponents of low_ and high_
  int last_ = 1;
  double low_ = 1;
  double high_ = 10;
  double begin_ = 0;
  double end_ = 0;
};

}  // namespace artifex_devices
