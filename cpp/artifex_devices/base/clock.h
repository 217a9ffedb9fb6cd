// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <ctime>

namespace artifex_devices {

/// Nanoseconds of a clock of the system.
inline int64_t clock_ns(clockid_t clock = CLOCK_MONOTONIC) noexcept {
  timespec now{};
  ::clock_gettime(clock, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace artifex_devices
