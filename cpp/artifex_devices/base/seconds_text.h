// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <array>
#include <string>
#include <utility>

namespace artifex_devices {

/// Four digits and a unit: "560 us", "2.5 s", "0 s".
inline std::string seconds_text(double seconds) {
  constexpr std::array<std::pair<double, const char*>, 3> kUnits = {{{1.0, "s"}, {1e-3, "ms"}, {1e-6, "us"}}};
  for (const auto& [factor, unit] : kUnits) {
    if (seconds >= factor) return fmt::format("{:.4g} {}", seconds / factor, unit);
  }
  return seconds == 0 ? "0 s" : fmt::format("{:.4g} ns", seconds / 1e-9);
}

}  // namespace artifex_devices
