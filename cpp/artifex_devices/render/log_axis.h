// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace artifex_devices {

/// "4.5e+10" for people: three digits with a prefix of the SI, "45 G". Above 999 exa and below 1 in E notation.
std::string si_text(double value);

/// A logarithmic axis over whole powers of ten that holds the values it is made for.
/// Example: for 3 and 240, pixels 0 to 300: from 1 to 1000, 10 at pixel 100.
class LogAxis {
 public:
  /// Values above 0 and finite, one at least; `begin` and `end` are pixels.
  LogAxis(const std::vector<double>& values, double begin, double end);

  double low() const noexcept { return low_; }
  double high() const noexcept { return high_; }
  double pixel(double value) const noexcept;
  /// Powers of ten, at most about 10 of them: every second or third where there are more.
  std::vector<double> ticks() const;

 private:
  int first_ = 0;  // powers of ten
  int last_ = 1;
  double low_ = 1;
  double high_ = 10;
  double begin_ = 0;
  double end_ = 0;
};

}  // namespace artifex_devices
