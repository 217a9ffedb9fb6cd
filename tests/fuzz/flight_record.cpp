// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/flight/flight_record.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "artifex_devices/base/error.h"
#include "artifex_devices/flight/flight_format.h"
#include "artifex_devices/flight/flight_timeline.h"
#include "fuzz.h"

using namespace artifex_devices;

// The first two bytes choose the size of the file; the others are the header's fields and the slots. Two records of
// these bytes are compared too.
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  constexpr size_t kMaxSlots = 16;
  const size_t slots = data[0] % kMaxSlots;
  std::string bytes(static_cast<size_t>(kFlightHeaderBytes) + slots * sizeof(FlightSlot), '\0');
  const size_t head = std::min(size - 2, sizeof(FlightHeader));
  std::memcpy(bytes.data(), data + 2, head);
  std::memcpy(bytes.data() + kFlightHeaderBytes, data + 2 + head,
              std::min(size - 2 - head, slots * sizeof(FlightSlot)));
  if (data[1] % 4 != 0) {  // mostly with a head that is not refused at once
    std::memcpy(bytes.data(), kFlightMagic, sizeof(kFlightMagic));
    const uint32_t fields[] = {kFlightVersion, static_cast<uint32_t>(slots), data[1] % 3U, 3};
    std::memcpy(bytes.data() + offsetof(FlightHeader, version), fields, sizeof(fields));
  }
  try {
    const FlightRecord record = parse_flight_record(bytes, "file");
    fuzz::require(record.events.size() <= slots);
    FlightRecord other = record;
    other.process = (record.process + 1) % record.process_count;
    for (const FlightGroupReport& report : compare_flight_records({record, other})) {
      fuzz::require(!report.members.empty() && report.behind.size() < report.members.size());
    }
    for (const JobMeeting& meeting : timeline_of({record, other, record}).meetings) {
      fuzz::require(meeting.members.size() > 1 && meeting.last < meeting.members.size() && meeting.waited_ns >= 0);
    }
  } catch (const InvalidArgument&) {
  }
  return 0;
}
