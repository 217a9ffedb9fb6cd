// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/flight/flight_record.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "artifex_devices/base/file.h"
#include "artifex_devices/base/interrupt.h"
#include "artifex_devices/base/python_repr.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/flight/flight_format.h"

namespace artifex_devices {
namespace {

constexpr auto kOperation = "flight record";

std::string text_in(std::span<const char> place) {
  return {place.data(), static_cast<size_t>(std::ranges::find(place, '\0') - place.begin())};
}

// A copy of T from the bytes.
template <class T>
T value_at(std::string_view bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

// The place of a member of a struct in the file.
#define ARTIFEX_FLIGHT_FIELD(type, struct_name, field, base) \
  value_at<type>(bytes, (base) + offsetof(struct_name, field))

uint64_t number_of_slot(std::string_view bytes, size_t slot) {
  return ARTIFEX_FLIGHT_FIELD(uint64_t, FlightSlot, number, slot);
}

// Whether two readings of a slot have the same event, which may have ended between them.
bool is_same_event(const char* slot, const char* again) {
  const auto is_same = [&](size_t first, size_t last) {
    return std::memcmp(slot + first, again + first, last - first) == 0;
  };
  return is_same(0, offsetof(FlightSlot, end_ns)) &&
         is_same(offsetof(FlightSlot, digest), offsetof(FlightSlot, bytes)) &&
         is_same(offsetof(FlightSlot, turn), offsetof(FlightSlot, outcome)) &&
         is_same(offsetof(FlightSlot, texts), sizeof(FlightSlot));
}

template <size_t N>
std::string text_at(std::string_view bytes, size_t offset) {
  return text_in(std::span(bytes.data() + offset, N));
}

// An enumerator up to `last`, or `other`.
template <class E>
E enumerator(uint8_t value, E last, E other) {
  return value <= static_cast<uint8_t>(last) ? static_cast<E>(value) : other;
}

FlightEvent event_of_slot(std::string_view bytes, size_t slot, int64_t epoch_offset_ns) {
  const auto since_epoch = [&](int64_t ns) {  // wraps for nonsense
    return static_cast<int64_t>(static_cast<uint64_t>(ns) + static_cast<uint64_t>(epoch_offset_ns));
  };
  FlightEvent event;
  event.number = number_of_slot(bytes, slot);
  event.kind =
      enumerator(ARTIFEX_FLIGHT_FIELD(uint8_t, FlightSlot, kind, slot), FlightKind::kExchange, FlightKind::kExchange);
  event.route = enumerator(ARTIFEX_FLIGHT_FIELD(uint8_t, FlightSlot, route, slot), FlightRoute::kSharedMemory,
                           FlightRoute::kNone);
  event.outcome = enumerator(ARTIFEX_FLIGHT_FIELD(uint8_t, FlightSlot, outcome, slot), FlightOutcome::kFailed,
                             FlightOutcome::kFailed);
  event.turn = ARTIFEX_FLIGHT_FIELD(uint32_t, FlightSlot, turn, slot);
  event.group = ARTIFEX_FLIGHT_FIELD(uint32_t, FlightSlot, group, slot);
  event.line = ARTIFEX_FLIGHT_FIELD(uint32_t, FlightSlot, line, slot);
  event.digest = ARTIFEX_FLIGHT_FIELD(uint64_t, FlightSlot, digest, slot);
  event.bytes = ARTIFEX_FLIGHT_FIELD(uint64_t, FlightSlot, bytes, slot);
  event.begin_ns = since_epoch(ARTIFEX_FLIGHT_FIELD(int64_t, FlightSlot, begin_ns, slot));
  const auto end_ns = ARTIFEX_FLIGHT_FIELD(int64_t, FlightSlot, end_ns, slot);
  event.end_ns = end_ns == 0 ? 0 : since_epoch(end_ns);
  event.processes = text_at<sizeof(FlightTexts::processes)>(bytes, slot + offsetof(FlightSlot, texts.processes));
  event.file = text_at<sizeof(FlightTexts::file)>(bytes, slot + offsetof(FlightSlot, texts.file));
  event.operation = text_at<sizeof(FlightTexts::operation)>(bytes, slot + offsetof(FlightSlot, texts.operation));
  return event;
}

using Meetings = std::map<uint32_t, const FlightEvent*>;  // of one process in one group, by turn

bool is_same(const FlightEvent& a, const FlightEvent& b) { return a.digest == b.digest; }

// The last turn at which all members did the same; 0 if the records hold none.
uint32_t last_common_turn(const std::map<int, Meetings>& members) {
  const Meetings& first = members.begin()->second;
  for (auto it = first.rbegin(); it != first.rend(); ++it) {
    const bool all_came = std::ranges::all_of(members, [&](const auto& member) {
      const auto found = member.second.find(it->first);
      return found != member.second.end() && is_same(*found->second, *it->second);
    });
    if (all_came) return it->first;
  }
  return 0;
}

FlightGroupReport report_of(const std::map<int, Meetings>& members) {
  FlightGroupReport report;
  const uint32_t common = last_common_turn(members);
  const FlightEvent* first_next = nullptr;
  for (const auto& [process, meetings] : members) {
    if (report.processes.empty() && !meetings.empty()) report.processes = meetings.begin()->second->processes;
    const auto next = meetings.upper_bound(common);
    report.members.push_back({process, std::nullopt});
    if (next == meetings.end()) {
      report.behind.push_back(process);
      continue;
    }
    report.members.back().next = *next->second;
    if (first_next != nullptr && !is_same(*first_next, *next->second)) report.is_apart = true;
    first_next = first_next == nullptr ? next->second : first_next;
  }
  if (first_next == nullptr) report.behind.clear();  // all are at the common meeting
  if (common != 0) report.common = *members.begin()->second.at(common);
  return report;
}

// The ranges of a group in its text "0-3,6": first and last process. For a truncated text, only the ranges that it
// contains completely.
std::vector<std::pair<int, int>> ranges_in(const std::string& processes) {
  std::vector<std::pair<int, int>> ranges;
  const auto number = [](const std::string& text) {
    const bool is_number =
        !text.empty() && text.size() < 8 && text.find_first_not_of("0123456789") == std::string::npos;
    return is_number ? std::stoi(text) : -1;
  };
  for (size_t begin = 0; begin < processes.size();) {
    const size_t end = std::min(processes.find(',', begin), processes.size());
    const std::string range = processes.substr(begin, end - begin);
    const size_t dash = range.find('-');
    const int first = number(range.substr(0, dash));
    const int last = dash == std::string::npos ? first : number(range.substr(dash + 1));
    if (first >= 0 && last >= first) ranges.emplace_back(first, last);
    begin = end + 1;
  }
  return ranges;
}

}  // namespace

FlightRecord parse_flight_record(std::string_view bytes, const std::string& name) {
  const bool is_record = bytes.size() >= static_cast<size_t>(kFlightHeaderBytes) &&
                         bytes.starts_with(std::string_view(kFlightMagic, sizeof(kFlightMagic)));
  if (!is_record) {
    throw_error("{}: {} is not a flight record; expected a file process_N.flight of a job; give the folder of the job",
                kOperation, printable(name));
  }
  const auto version = ARTIFEX_FLIGHT_FIELD(uint32_t, FlightHeader, version, 0);
  if (version != kFlightVersion) {
    throw_error("{}: {} has version {} of the format; expected {}; read it with the artifex_devices that wrote it",
                kOperation, printable(name), version, kFlightVersion);
  }
  const auto capacity = ARTIFEX_FLIGHT_FIELD(uint32_t, FlightHeader, capacity, 0);
  const auto process = ARTIFEX_FLIGHT_FIELD(uint32_t, FlightHeader, process, 0);
  const auto process_count = ARTIFEX_FLIGHT_FIELD(uint32_t, FlightHeader, process_count, 0);
  constexpr uint32_t kMaxProcesses = 1 << 20;
  if (capacity == 0 || capacity > kMaxFlightEvents || process_count > kMaxProcesses || process >= process_count ||
      bytes.size() != static_cast<size_t>(kFlightHeaderBytes) + size_t{capacity} * sizeof(FlightSlot)) {
    throw_error("{}: {} is damaged: {} bytes for {} events, of process {} of {}; copy the complete file again",
                kOperation, printable(name), bytes.size(), capacity, process, process_count);
  }
  FlightRecord record;
  record.process = static_cast<int>(process);
  record.process_count = static_cast<int>(process_count);
  record.pid = ARTIFEX_FLIGHT_FIELD(int64_t, FlightHeader, pid, 0);
  record.host = text_at<sizeof(FlightHeader::host)>(bytes, offsetof(FlightHeader, host));
  record.has_left = ARTIFEX_FLIGHT_FIELD(uint32_t, FlightHeader, has_left, 0) != 0;
  record.begin_ns = ARTIFEX_FLIGHT_FIELD(int64_t, FlightHeader, realtime_ns, 0);
  const auto monotonic_ns = ARTIFEX_FLIGHT_FIELD(int64_t, FlightHeader, monotonic_ns, 0);
  const auto offset_ns =
      static_cast<int64_t>(static_cast<uint64_t>(record.begin_ns) - static_cast<uint64_t>(monotonic_ns));
  for (uint32_t i = 0; i < capacity; ++i) {
    const size_t slot = static_cast<size_t>(kFlightHeaderBytes) + i * sizeof(FlightSlot);
    if (number_of_slot(bytes, slot) != 0) record.events.push_back(event_of_slot(bytes, slot, offset_ns));
  }
  std::ranges::sort(record.events, {}, &FlightEvent::number);
  if (!record.events.empty()) record.event_count = record.events.back().number;
  return record;
}

FlightRecord read_flight_record(const std::string& path) {
  const File file = File::open(path, kOperation);
  constexpr int64_t kMaxBytes = kFlightHeaderBytes + int64_t{kMaxFlightEvents} * sizeof(FlightSlot);
  std::string bytes(static_cast<size_t>(std::min(file.bytes(), kMaxBytes)), '\0');
  file.read(bytes.data(), static_cast<int64_t>(bytes.size()), 0);
  // A slot that the process was writing may mix two events. Then two readings differ, and the slot is left out.
  std::string again(bytes.size(), '\0');
  file.read(again.data(), static_cast<int64_t>(again.size()), 0);
  for (size_t slot = kFlightHeaderBytes; slot + sizeof(FlightSlot) <= bytes.size(); slot += sizeof(FlightSlot)) {
    if (!is_same_event(bytes.data() + slot, again.data() + slot)) std::memset(again.data() + slot, 0, sizeof(uint64_t));
  }
  return parse_flight_record(again, path);
}

std::vector<FlightGroupReport> compare_flight_records(const std::vector<FlightRecord>& records) {
  std::map<std::pair<uint32_t, std::string>, std::map<int, Meetings>> groups;
  for (const FlightRecord& record : records) {
    for (const FlightEvent& event : record.events) {
      if (event.kind == FlightKind::kMeeting)
        groups[{event.group, event.processes}][record.process].insert_or_assign(event.turn, &event);
    }
  }
  std::set<int> processes;
  for (const FlightRecord& record : records) processes.insert(record.process);
  std::vector<FlightGroupReport> reports;
  for (auto& [key, members] : groups) {
    check_interrupt();
    for (const auto& [first, last] : ranges_in(key.second)) {  // members without a meeting are behind
      for (auto each = processes.lower_bound(first); each != processes.end() && *each <= last; ++each) members[*each];
    }
    reports.push_back(report_of(members));
  }
  std::ranges::stable_partition(
      reports, [](const FlightGroupReport& report) { return report.is_apart || !report.behind.empty(); });
  return reports;
}

#undef ARTIFEX_FLIGHT_FIELD

}  // namespace artifex_devices
