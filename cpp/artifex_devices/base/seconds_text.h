// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <array>
#include <string>
#include <utility>

namespace artifex_devices {

/// Four digits and a unit, as _base/text.seconds_text in Python: "560 us", "2.5 s", "0 s", "86,400 s".
inline std::string seconds_text(double seconds) {
  if (seconds == 0) return "0 s";
  constexpr double kLimit = 9999.5;  // larger numbers round to more digits
  constexpr std::array<std::pair<double, const char*>, 3> kUnits = {{{1.0, "s"}, {1e-3, "ms"}, {1e-6, "us"}}};
  for (const auto& [scale, unit] : kUnits) {
    if (seconds < kLimit / 1e4 * scale) continue;
    const double value = seconds / scale;
    if (value < kLimit) return fmt::format("{:.4g} {}", value, unit);
    const std::string digits = fmt::format("{:.0f}", value);
    std::string text;
    for (size_t i = 0; i < digits.size(); ++i) {
      if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
      text += digits[i];
    }
    return text + " " + unit;
  }
  return fmt::format("{:.4g} ns", seconds / 1e-9);
}

}  // namespace artifex_devices
