// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/render/log_axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace artifex_devices {

std::string si_text(double value) {
  constexpr std::array<const char*, 7> kPrefixes = {"", " k", " M", " G", " T", " P", " E"};
  size_t prefix = 0;
  double scaled = value;
  // 999.5 and above would round to 1000.
  while (scaled >= 999.5 && prefix + 1 < kPrefixes.size()) {
    scaled /= 1000;
    ++prefix;
  }
  return fmt::format("{:.3g}{}", scaled, kPrefixes[prefix]);
}

LogAxis::LogAxis(const std::vector<double>& values, double begin, double end) : begin_(begin), end_(end) {
  const auto [least, most] = std::ranges::minmax(values);
  first_ = static_cast<int>(std::floor(std::log10(least) + 1e-9));
  last_ = std::max(static_cast<int>(std::ceil(std::log10(most) - 1e-9)), first_ + 1);
  low_ = std::pow(10.0, first_);
  high_ = std::pow(10.0, last_);
}

double LogAxis::pixel(double value) const noexcept {
  const double share = (std::log10(value) - first_) / static_cast<double>(last_ - first_);
  return begin_ + (end_ - begin_) * std::clamp(share, 0.0, 1.0);
}

std::vector<double> LogAxis::ticks() const {
  const int step = (last_ - first_) / 10 + 1;
  std::vector<double> ticks;
  for (int power = first_; power <= last_; power += step) ticks.push_back(std::pow(10.0, power));
  return ticks;
}

}  // namespace artifex_devices
