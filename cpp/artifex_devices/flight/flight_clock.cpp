// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/flight/flight_clock.h"

#include <fstream>
#include <string>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "artifex_devices/base/clock.h"

namespace artifex_devices {
namespace {

constexpr int64_t kBetweenComparisonsNs = 1'000'000;

#if defined(__x86_64__)
uint64_t counter() noexcept { return __rdtsc(); }
#else
uint64_t counter() noexcept { return 0; }
#endif

// Both clocks at one moment.
struct Moment {
  uint64_t ticks = 0;
  int64_t ns = 0;
  uint64_t lasted = 0;  // ticks, between which `ns` was read
};

Moment moment() noexcept {
  const uint64_t before = counter();
  const int64_t ns = clock_ns();
  const uint64_t lasted = counter() - before;
  return {before + lasted / 2, ns, lasted};
}

// The most exact of some moments: the thread may have been interrupted in others.
Moment exact_moment() noexcept {
  Moment best = moment();
  for (int i = 0; i < 8; ++i) {
    const Moment other = moment();
    if (other.lasted < best.lasted) best = other;
  }
  return best;
}

// The kernel takes its clock from the counter only if that runs at one rate and is equal on all cores.
bool has_counter() {
#if defined(__x86_64__)
  std::ifstream file("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  std::string source;
  return std::getline(file, source) && source == "tsc";
#else
  return false;
#endif
}

double measured_ns_per_tick() noexcept {
  try {
    if (!has_counter()) return 0;
  } catch (...) {
    return 0;
  }
  const Moment begin = exact_moment();
  while (clock_ns() - begin.ns < kBetweenComparisonsNs) {
  }
  const Moment end = exact_moment();
  return end.ticks > begin.ticks ? static_cast<double>(end.ns - begin.ns) / static_cast<double>(end.ticks - begin.ticks)
                                 : 0;
}

}  // namespace

FlightClock::FlightClock() noexcept {
  static const double ns_per_tick = measured_ns_per_tick();
  ns_per_tick_ = ns_per_tick;
  if (ns_per_tick_ == 0) return;
  ticks_between_ = static_cast<uint64_t>(static_cast<double>(kBetweenComparisonsNs) / ns_per_tick_);
  const Moment now = exact_moment();
  first_ = now.ticks;
  compared_ = now.ticks;
  ahead_ns_ = now.ns;
}

int64_t FlightClock::now_ns() noexcept {
  if (ns_per_tick_ == 0) return clock_ns();
  const uint64_t now = counter();
  // Before the last comparison, by another thread or after a move to another machine, the difference is huge.
  if (now - compared_.load(std::memory_order_acquire) > ticks_between_) return compare();
  return ahead_ns_.load(std::memory_order_relaxed) +
         static_cast<int64_t>(static_cast<double>(static_cast<int64_t>(now - first_)) * ns_per_tick_);
}

int64_t FlightClock::compare() noexcept {
  const Moment now = moment();
  const double since_first = static_cast<double>(static_cast<int64_t>(now.ticks - first_)) * ns_per_tick_;
  constexpr uint64_t kMostTicks = 2000;  // about a microsecond; more where the thread was interrupted
  if (now.lasted < kMostTicks) {
    ahead_ns_.store(now.ns - static_cast<int64_t>(since_first), std::memory_order_relaxed);
    compared_.store(now.ticks, std::memory_order_release);
  }
  return now.ns;
}

}  // namespace artifex_devices
