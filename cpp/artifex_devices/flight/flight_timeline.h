// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "artifex_devices/flight/flight_record.h"

namespace artifex_devices {

/// How far the clock of a host is ahead of that of the first record's host.
struct HostClock {
  std::string host;
  int64_t ahead_ns = 0;
  int64_t error_ns = 0;  // the most by which `ahead_ns` can be wrong; -1 where no meeting tells anything
};

/// A meeting to which several processes came.
struct JobMeeting {
  struct Member {
    size_t record = 0;     // place among the records
    size_t event = 0;      // place among its events
    int64_t begin_ns = 0;  // by the clock of the first host
    int64_t end_ns = 0;    // 0 while it lasts
  };

  std::string operation;
  std::string processes;
  std::vector<Member> members;  // at least two, by process
  size_t last = 0;              // place among `members` of the one that came last
  int64_t waited_ns = 0;        // of all others, for that one
};

/// What the records of one job tell about time.
struct JobTimeline {
  std::vector<HostClock> clocks;     // of each host, in the order of the records
  std::vector<size_t> clock_of;      // of each record
  std::vector<JobMeeting> meetings;  // by the begin of the first member
};

/// Aligns the clocks of the hosts and finds the meetings of a job. Clocks are aligned by meetings: nobody leaves one
/// before all have come, which bounds the difference of two clocks from both sides. Processes of a host share a clock.
JobTimeline timeline_of(const std::vector<FlightRecord>& records);

}  // namespace artifex_devices
