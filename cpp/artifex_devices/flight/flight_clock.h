// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

namespace artifex_devices {

/// CLOCK_MONOTONIC in half the time: from the time stamp counter of an x86 processor, where the kernel takes its own
/// clock from it; elsewhere by the system call. The counter is compared with CLOCK_MONOTONIC every millisecond. The
/// error of a time is below a microsecond, even while the system adjusts its clock (by at most 0.05 %). Two readings of
/// a thread may be out of order by this error. Any number of threads may call it.
class FlightClock {
 public:
  /// Measures the rate of the counter for a millisecond, once in a process.
  FlightClock() noexcept;

  int64_t now_ns() noexcept;

 private:
  int64_t compare() noexcept;

  uint64_t first_ = 0;                  // counter of the first comparison
  double ns_per_tick_ = 0;              // 0 where the counter is not used
  uint64_t ticks_between_ = 0;          // comparisons
  std::atomic<uint64_t> compared_ = 0;  // counter of the last comparison
  std::atomic<int64_t> ahead_ns_ = 0;   // of CLOCK_MONOTONIC, of the nanoseconds since `first_`
};

}  // namespace artifex_devices
