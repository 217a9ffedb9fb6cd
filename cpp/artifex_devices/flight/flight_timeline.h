// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "artifex_devices/flight/flight_record.h"

namespace artifex_devices {

/// Difference between the clock of a host and the clock of the first record's host.
struct HostClock {
  std::string host;
  int64_t ahead_ns = 0;
  int64_t error_ns = 0;  // largest possible error of `ahead_ns`; -1 without a meeting that bounds it
};

/// A meeting of several processes.
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
  size_t last = 0;              // index in `members` of the member that arrived last
  int64_t waited_ns = 0;        // sum of the times that other members waited for it
};

/// Clocks and meetings of one job, from its records.
struct JobTimeline {
  std::vector<HostClock> clocks;     // of each host, in the order of the records
  std::vector<size_t> clock_of;      // of each record
  std::vector<JobMeeting> meetings;  // by the begin of the first member
};

/// Aligns the clocks of the hosts and finds the meetings of a job. Clocks are aligned by meetings: no process leaves a
/// meeting before all have arrived, which bounds the difference of two clocks from both sides. Processes of a host
/// share a clock.
JobTimeline timeline_of(const std::vector<FlightRecord>& records);

}  // namespace artifex_devices
