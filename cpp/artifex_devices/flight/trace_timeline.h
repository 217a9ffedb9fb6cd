// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "artifex_devices/base/recorder.h"

namespace artifex_devices {

/// A message from one process to another and back, each time by the clock of the process that reads it.
struct RoundTrip {
  int64_t sent_ns = 0;
  int64_t answered_ns = 0;  // by the other clock
  int64_t returned_ns = 0;
};

/// Difference between two clocks.
struct ClockDifference {
  int64_t ahead_ns = 0;
  int64_t error_ns = 0;  // largest possible error of `ahead_ns`
};

/// Returns how far the clock of the answering process is ahead. The answer was written between the other two times,
/// which bounds the difference from both sides; the result is the intersection of the bounds of all round trips.
/// Returns nothing without round trips, or if they contradict each other because a clock was set.
std::optional<ClockDifference> clock_difference(const std::vector<RoundTrip>& trips);

/// A collective, or a meeting of processes, in which several took part.
struct TraceMeeting {
  std::vector<size_t> members;  // events, by begin
  size_t slowest = 0;           // event of the slowest member; all other members waited for it
  int64_t waited_ns = 0;        // sum of the waiting times of the other members
};

/// The meetings of events whose times are of one clock, by the begin of their first member.
///
/// Within a process, the slowest member is the participant that ran longest before it arrived, because participants
/// that share a thread always arrive in turn. Between processes, it is the process whose last participant arrived last.
std::vector<TraceMeeting> trace_meetings(const std::vector<TraceEvent>& events);

}  // namespace artifex_devices
