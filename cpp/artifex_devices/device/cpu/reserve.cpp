// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/device/cpu/reserve.h"

namespace artifex_devices {

std::byte* Reserve::cut(int64_t bytes) noexcept {
  if (is_retired_) return nullptr;
  const auto units = static_cast<size_t>(rounded(bytes) / kUnit);
  size_t run = 0;
  for (size_t i = 0; i < used_.size(); ++i) {
    run = used_[i] ? 0 : run + 1;
    if (run < units) continue;
    const size_t first = i + 1 - units;
    for (size_t unit = first; unit <= i; ++unit) used_[unit] = true;
    used_units_ += static_cast<int64_t>(units);
    return data_ + static_cast<int64_t>(first) * kUnit;
  }
  return nullptr;
}

void Reserve::give(std::byte* data, int64_t bytes) noexcept {
  const auto units = static_cast<size_t>(rounded(bytes) / kUnit);
  const auto first = static_cast<size_t>((data - data_) / kUnit);
  for (size_t unit = first; unit < first + units; ++unit) used_[unit] = false;
  used_units_ -= static_cast<int64_t>(units);
}

}  // namespace artifex_devices
