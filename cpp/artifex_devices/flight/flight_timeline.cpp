// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/flight/flight_timeline.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace artifex_devices {
namespace {

constexpr int64_t kLongestNs = int64_t{1} << 62;  // times of damaged records stay in the range of sums

int64_t bounded(int64_t ns) { return std::clamp(ns, -kLongestNs / 2, kLongestNs / 2); }

// The meetings that at least two processes reached, by group and number; times are by the clock of each host.
std::vector<JobMeeting> meetings_of(const std::vector<FlightRecord>& records) {
  std::map<std::tuple<uint32_t, std::string, uint32_t, uint64_t>, JobMeeting> found;  // and the digest
  for (size_t record = 0; record < records.size(); ++record) {
    for (size_t i = 0; i < records[record].events.size(); ++i) {
      const FlightEvent& event = records[record].events[i];
      if (event.kind != FlightKind::kMeeting) continue;
      JobMeeting& meeting = found[{event.group, event.processes, event.turn, event.digest}];
      if (!meeting.members.empty() && meeting.members.back().record == record) continue;  // a damaged record
      meeting.operation = event.operation;
      meeting.processes = event.processes;
      meeting.members.push_back({record, i, bounded(event.begin_ns), bounded(event.end_ns)});
    }
  }
  std::vector<JobMeeting> meetings;
  for (auto& [key, meeting] : found) {
    if (meeting.members.size() > 1) meetings.push_back(std::move(meeting));
  }
  return meetings;
}

// Range of the difference of two clocks.
struct Range {
  int64_t least = std::numeric_limits<int64_t>::min();
  int64_t most = std::numeric_limits<int64_t>::max();
};

// Aligns the clocks of all hosts with clock 0, by the meetings of processes of both.
void align_clocks(JobTimeline& timeline, const std::vector<FlightRecord>& records) {
  const auto has_left = [&](const JobMeeting::Member& member) {
    return records[member.record].events[member.event].outcome == FlightOutcome::kDone;
  };
  std::vector<Range> ranges(timeline.clocks.size());
  for (const JobMeeting& meeting : timeline.meetings) {
    // Of the processes of clock 0: the latest begin and the earliest end bound the clocks of all others.
    int64_t last_begin_ns = std::numeric_limits<int64_t>::min();
    int64_t first_end_ns = std::numeric_limits<int64_t>::max();
    bool has_one = false;
    for (const JobMeeting::Member& here : meeting.members) {
      if (timeline.clock_of[here.record] != 0 || !has_left(here)) continue;
      last_begin_ns = std::max(last_begin_ns, here.begin_ns);
      first_end_ns = std::min(first_end_ns, here.end_ns);
      has_one = true;
    }
    if (!has_one) continue;
    for (const JobMeeting::Member& there : meeting.members) {
      if (timeline.clock_of[there.record] == 0 || !has_left(there)) continue;
      Range& range = ranges[timeline.clock_of[there.record]];
      range.least = std::max(range.least, there.begin_ns - first_end_ns);
      range.most = std::min(range.most, there.end_ns - last_begin_ns);
    }
  }
  for (size_t host = 1; host < ranges.size(); ++host) {
    const Range& range = ranges[host];
    const bool is_known = range.least != std::numeric_limits<int64_t>::min() && range.least <= range.most;
    const int64_t ahead_ns = is_known ? std::midpoint(range.least, range.most) : 0;
    timeline.clocks[host].ahead_ns = ahead_ns;
    timeline.clocks[host].error_ns = is_known ? range.most - ahead_ns : -1;
  }
}

}  // namespace

JobTimeline timeline_of(const std::vector<FlightRecord>& records) {
  JobTimeline timeline;
  std::unordered_map<std::string, size_t> clocks;  // by host
  for (const FlightRecord& record : records) {
    const auto [known, is_new] = clocks.emplace(record.host, timeline.clocks.size());
    timeline.clock_of.push_back(known->second);
    if (is_new) timeline.clocks.push_back({record.host, 0, 0});
  }
  timeline.meetings = meetings_of(records);
  align_clocks(timeline, records);
  for (JobMeeting& meeting : timeline.meetings) {
    for (JobMeeting::Member& member : meeting.members) {
      const int64_t ahead_ns = timeline.clocks[timeline.clock_of[member.record]].ahead_ns;
      member.begin_ns -= ahead_ns;
      if (member.end_ns != 0) member.end_ns -= ahead_ns;
    }
    const auto last = std::ranges::max_element(meeting.members, {}, &JobMeeting::Member::begin_ns);
    meeting.last = static_cast<size_t>(last - meeting.members.begin());
    for (const JobMeeting::Member& member : meeting.members)
      meeting.waited_ns = bounded(meeting.waited_ns + bounded(last->begin_ns - member.begin_ns));
  }
  std::ranges::stable_sort(timeline.meetings, {}, [](const JobMeeting& meeting) {
    return std::ranges::min(meeting.members, {}, &JobMeeting::Member::begin_ns).begin_ns;
  });
  return timeline;
}

}  // namespace artifex_devices
