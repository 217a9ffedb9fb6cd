// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/flight/trace_timeline.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace artifex_devices {
namespace {

TraceEvent member(int64_t process, uint64_t meeting, int64_t arrived_ns, int64_t busy_ns) {
  return {.kind = TraceKind::kCollective,
          .process = ProcessIndex(process),
          .begin_ns = arrived_ns,
          .end_ns = arrived_ns + 1,
          .busy_ns = busy_ns,
          .meeting = meeting};
}

TEST(TraceTimeline, TheSlowestOfAProcessRanLongest) {
  // They share a thread: the last to arrive is not the slowest.
  const std::vector<TraceMeeting> meetings =
      trace_meetings({member(0, 1, 100, 100), member(0, 1, 600, 500), member(0, 1, 700, 100)});
  ASSERT_EQ(meetings.size(), 1U);
  EXPECT_EQ(meetings[0].slowest, 1U);
  EXPECT_EQ(meetings[0].waited_ns, 800);
  EXPECT_EQ(meetings[0].members, (std::vector<size_t>{0, 1, 2}));
}

TEST(TraceTimeline, TheSlowestOfSeveralProcessesIsInTheOneThatCameLast) {
  const uint64_t shared = TraceEvent::kSharedMeeting | 7;
  const std::vector<TraceMeeting> meetings = trace_meetings(
      {member(0, shared, 10, 900), member(0, shared, 20, 5), member(1, shared, 70, 30), member(1, shared, 80, 10)});
  ASSERT_EQ(meetings.size(), 1U);
  EXPECT_EQ(meetings[0].slowest, 2U);
  EXPECT_EQ(meetings[0].waited_ns, 60);
}

TEST(TraceTimeline, NumbersOfMeetingsBelongToTheirProcess) {
  const std::vector<TraceMeeting> meetings =
      trace_meetings({member(1, 3, 50, 1), member(0, 3, 40, 2), member(1, 3, 60, 3), member(0, 3, 45, 4),
                      member(0, 0, 1, 1), member(0, 0, 2, 2), member(0, 9, 5, 5)});
  ASSERT_EQ(meetings.size(), 2U);
  EXPECT_EQ(meetings[0].slowest, 3U);
  EXPECT_EQ(meetings[1].slowest, 2U);
}

TEST(TraceTimeline, ADifferenceOfClocksIsWithinItsError) {
  std::mt19937_64 random(7);
  for (int run = 0; run < 200; ++run) {
    const int64_t ahead = static_cast<int64_t>(random() % 2'000'000) - 1'000'000;
    std::vector<RoundTrip> trips;
    int64_t now = 0;
    int64_t shortest = 1'000'000;
    for (int i = 0; i < 20; ++i) {
      const int64_t there = 100 + static_cast<int64_t>(random() % 10'000);
      const int64_t back = 100 + static_cast<int64_t>(random() % 10'000);
      trips.push_back({now, now + there + ahead, now + there + back});
      shortest = std::min(shortest, there + back);
      now += 20'000;
    }
    const auto found = clock_difference(trips);
    ASSERT_TRUE(found);
    EXPECT_LE(std::abs(found->ahead_ns - ahead), found->error_ns);
    EXPECT_LE(found->error_ns, shortest / 2 + 1);
  }
}

TEST(TraceTimeline, AClockThatWasSetHasNoDifference) {
  EXPECT_FALSE(clock_difference({}));
  EXPECT_FALSE(clock_difference({{0, 5, 10}, {20, 9'000, 30}}));
}

}  // namespace
}  // namespace artifex_devices
