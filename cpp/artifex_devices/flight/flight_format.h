// SPDX-License-Identifier: Apache-2.0
// The file of a flight record: a header, then a ring of slots (docs/formats/flight_record.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "artifex_devices/flight/flight_recorder.h"

namespace artifex_devices {

constexpr char kFlightMagic[8] = {'A', 'D', 'F', 'L', 'I', 'G', 'H', 'T'};
constexpr uint32_t kFlightVersion = 1;
constexpr int64_t kFlightHeaderBytes = 4096;
constexpr uint32_t kFlightEventsKept = 1024;
constexpr uint32_t kMaxFlightEvents = 1 << 16;  // of a file that is read, which may be sparse

struct FlightHeader {
  char magic[8];
  uint32_t version;
  uint32_t capacity;  // slots; event n is in slot (n - 1) % capacity
  uint32_t process;
  uint32_t process_count;
  int64_t pid;
  int64_t realtime_ns;  // CLOCK_REALTIME and CLOCK_MONOTONIC at one moment, when the recorder began
  int64_t monotonic_ns;
  uint64_t unused;
  uint32_t has_left;  // 1 after the process has left the job
  char host[64];      // texts end with a zero unless they fill their place
};

struct FlightSlot {
  uint64_t number;   // 1 and up; 0 while the slot is empty
  int64_t begin_ns;  // CLOCK_MONOTONIC
  int64_t end_ns;    // 0 while it lasts
  uint64_t digest;   // equal where processes do the same
  uint64_t bytes;    // sent and received; 0 while it lasts
  uint32_t turn;     // number of the meeting in its group, from 1; 0 for other kinds
  uint32_t line;
  uint32_t group;  // hash of the numbers of the processes
  uint8_t kind;
  uint8_t route;
  uint8_t outcome;
  uint8_t unused;
  FlightTexts texts;
};

static_assert(sizeof(FlightHeader) <= kFlightHeaderBytes && sizeof(FlightSlot) == 256);
static_assert(std::is_standard_layout_v<FlightSlot> && std::is_trivially_copyable_v<FlightSlot>);

}  // namespace artifex_devices
