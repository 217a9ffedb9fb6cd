// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "artifex_devices/flight/flight_recorder.h"

namespace artifex_devices {

/// An event of a flight record; FlightOperation describes the fields.
struct FlightEvent {
  uint64_t number = 0;  // among the events of its process, from 1
  FlightKind kind = FlightKind::kMeeting;
  FlightRoute route = FlightRoute::kNone;
  FlightOutcome outcome = FlightOutcome::kLasts;
  uint32_t turn = 0;  // number of the meeting in its group, from 1; 0 for an exchange
  uint32_t group = 0;
  std::string processes;
  std::string operation;
  std::string file;
  int64_t line = 0;
  uint64_t digest = 0;
  uint64_t bytes = 0;
  int64_t begin_ns = 0;  // since the epoch, by the clock of the host
  int64_t end_ns = 0;    // 0 while it lasts
};

/// The flight record of one process.
struct FlightRecord {
  int process = 0;
  int process_count = 0;
  int64_t pid = 0;
  std::string host;
  bool has_left = false;
  int64_t begin_ns = 0;  // when the recorder began, since the epoch
  uint64_t event_count = 0;
  std::vector<FlightEvent> events;  // the last ones, by number
};

/// Reads a flight record, also while its process writes it: an event that is being written is left out. InvalidArgument
/// for a file that is not one; FileError where it cannot be read.
FlightRecord read_flight_record(const std::string& path);
/// Does the same for the bytes of a file; `name` is for messages.
FlightRecord parse_flight_record(std::string_view bytes, const std::string& name);

/// Comparison of the records of one group of processes.
struct FlightGroupReport {
  struct Member {
    int process = 0;
    std::optional<FlightEvent> next;  // its first meeting after the last common one
  };

  std::string processes;
  std::optional<FlightEvent> common;  // the last meeting of all members, from the record of the first one
  std::vector<Member> members;        // members with a record, ascending
  std::vector<int> behind;            // members without a next meeting, if another member has one
  bool is_apart = false;              // whether members reached different meetings after the common one
};

/// Compares the meetings of processes, group by group; the groups in which processes are apart or behind come first.
/// Interruptible.
std::vector<FlightGroupReport> compare_flight_records(const std::vector<FlightRecord>& records);

}  // namespace artifex_devices
