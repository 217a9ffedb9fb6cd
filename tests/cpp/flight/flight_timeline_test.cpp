// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/flight/flight_timeline.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace artifex_devices {
namespace {

using Times = std::vector<std::pair<int64_t, int64_t>>;  // begin and end of each meeting, in ns

FlightRecord record_of(int process, const std::string& host, const Times& times) {
  FlightRecord record;
  record.process = process;
  record.process_count = 3;
  record.host = host;
  uint32_t turn = 0;
  for (const auto& [begin_ns, end_ns] : times) {
    FlightEvent event;
    event.number = ++turn;
    event.turn = turn;
    event.processes = "0-2";
    event.operation = "meeting " + std::to_string(turn);
    event.digest = turn;
    event.begin_ns = begin_ns;
    event.end_ns = end_ns;
    event.outcome = end_ns == 0 ? FlightOutcome::kLasts : FlightOutcome::kDone;
    record.events.push_back(event);
  }
  return record;
}

TEST(FlightTimeline, NamesTheProcessThatCameLast) {
  const JobTimeline timeline =
      timeline_of({record_of(0, "a", {{100, 160}, {200, 260}}), record_of(1, "a", {{150, 160}, {205, 260}}),
                   record_of(2, "a", {{120, 160}, {250, 260}})});
  ASSERT_EQ(timeline.clocks.size(), 1U);
  EXPECT_EQ(timeline.clocks[0].error_ns, 0);
  ASSERT_EQ(timeline.meetings.size(), 2U);
  EXPECT_EQ(timeline.meetings[0].operation, "meeting 1");
  EXPECT_EQ(timeline.meetings[0].last, 1U);
  EXPECT_EQ(timeline.meetings[0].waited_ns, 50 + 30);
  EXPECT_EQ(timeline.meetings[1].last, 2U);
  EXPECT_EQ(timeline.meetings[1].waited_ns, 50 + 45);
}

TEST(FlightTimeline, AlignsTheClocksOfHostsByMeetings) {
  // The clock of b is 1,000 ahead. The first meeting alone says 960 to 1,030, the second one 990 to 1,060.
  const JobTimeline timeline =
      timeline_of({record_of(0, "a", {{100, 150}, {200, 220}}), record_of(1, "b", {{1110, 1130}, {1210, 1260}})});
  ASSERT_EQ(timeline.clocks.size(), 2U);
  EXPECT_EQ(timeline.clocks[1].host, "b");
  EXPECT_EQ(timeline.clocks[1].ahead_ns, 1010);  // the middle of 990 to 1,030
  EXPECT_EQ(timeline.clocks[1].error_ns, 20);
  EXPECT_EQ(timeline.meetings[0].members[1].begin_ns, 1110 - 1010);
  EXPECT_EQ(timeline.clock_of, (std::vector<size_t>{0, 1}));
}

TEST(FlightTimeline, SaysWhereNothingAlignsTwoClocks) {
  const JobTimeline timeline = timeline_of({record_of(0, "a", {{100, 0}}), record_of(1, "b", {{5000, 0}})});
  EXPECT_EQ(timeline.clocks[1].ahead_ns, 0);
  EXPECT_EQ(timeline.clocks[1].error_ns, -1);
  ASSERT_EQ(timeline.meetings.size(), 1U);
  EXPECT_EQ(timeline.meetings[0].members[0].end_ns, 0);
}

TEST(FlightTimeline, LeavesOutMeetingsOfOneProcess) {
  EXPECT_TRUE(timeline_of({record_of(0, "a", {{100, 150}}), record_of(1, "a", {})}).meetings.empty());
  EXPECT_TRUE(timeline_of({}).meetings.empty());
}

}  // namespace
}  // namespace artifex_devices
