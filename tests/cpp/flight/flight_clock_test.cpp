// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/flight/flight_clock.h"

#include <gtest/gtest.h>

#include "artifex_devices/base/clock.h"

namespace artifex_devices {
namespace {

TEST(FlightClock, IsTheMonotonicClock) {
  constexpr int64_t kErrorNs = 10'000;
  FlightClock clock;
  const int64_t begin = clock_ns();
  int64_t after = begin;
  while (after - begin < 20'000'000) {  // over several comparisons
    const int64_t before = after;
    const int64_t now = clock.now_ns();
    after = clock_ns();
    ASSERT_GT(now, before - kErrorNs);
    ASSERT_LT(now, after + kErrorNs);
  }
}

}  // namespace
}  // namespace artifex_devices
