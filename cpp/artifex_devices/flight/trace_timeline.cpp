// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/flight/trace_timeline.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

namespace artifex_devices {
namespace {

// The members of one process in a meeting.
struct ProcessPart {
  int64_t arrived_ns = std::numeric_limits<int64_t>::min();  // when the last member arrived
  size_t slowest = 0;                                        // the event that ran longest
};

TraceMeeting meeting_of(std::vector<size_t> members, const std::vector<TraceEvent>& events) {
  TraceMeeting meeting;
  std::ranges::stable_sort(members, {}, [&](size_t member) { return events[member].begin_ns; });
  std::map<ProcessIndex, ProcessPart> parts;
  for (const size_t member : members) {
    const TraceEvent& event = events[member];
    const auto [found, is_new] = parts.try_emplace(event.process);
    ProcessPart& part = found->second;
    part.arrived_ns = std::max(part.arrived_ns, event.begin_ns);
    if (is_new || event.busy_ns > events[part.slowest].busy_ns) part.slowest = member;
  }
  const auto last = std::ranges::max_element(parts, {}, [](const auto& part) { return part.second.arrived_ns; });
  meeting.slowest = last->second.slowest;
  if (parts.size() > 1) {
    for (const auto& [process, part] : parts) meeting.waited_ns += last->second.arrived_ns - part.arrived_ns;
  } else {
    for (const size_t member : members) meeting.waited_ns += events[meeting.slowest].busy_ns - events[member].busy_ns;
  }
  meeting.members = std::move(members);
  return meeting;
}

}  // namespace

std::optional<ClockDifference> clock_difference(const std::vector<RoundTrip>& trips) {
  int64_t least = std::numeric_limits<int64_t>::min();
  int64_t most = std::numeric_limits<int64_t>::max();
  for (const RoundTrip& trip : trips) {
    least = std::max(least, trip.answered_ns - trip.returned_ns);
    most = std::min(most, trip.answered_ns - trip.sent_ns);
  }
  if (trips.empty() || least > most) return std::nullopt;
  const int64_t width = most - least;
  return ClockDifference{least + width / 2, width - width / 2};
}

std::vector<TraceMeeting> trace_meetings(const std::vector<TraceEvent>& events) {
  std::map<std::tuple<TraceKind, ProcessIndex, uint64_t>, std::vector<size_t>> members;
  for (size_t i = 0; i < events.size(); ++i) {
    const TraceEvent& event = events[i];
    if (event.meeting == 0) continue;
    const bool is_shared = (event.meeting & TraceEvent::kSharedMeeting) != 0;
    members[{event.kind, is_shared ? ProcessIndex() : event.process, event.meeting}].push_back(i);
  }
  std::vector<TraceMeeting> meetings;
  for (auto& [key, found] : members) {
    if (found.size() > 1) meetings.push_back(meeting_of(std::move(found), events));
  }
  std::ranges::stable_sort(meetings, {},
                           [&](const TraceMeeting& meeting) { return events[meeting.members.front()].begin_ns; });
  return meetings;
}

}  // namespace artifex_devices
