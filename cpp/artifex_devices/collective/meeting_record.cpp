// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/collective/meeting_record.h"

#include <algorithm>
#include <cstddef>
#include <limits>

#include "artifex_devices/base/throw_error.h"

namespace artifex_devices {
namespace {

struct Head {
  char digest[32] = {};
  uint32_t group = 0;
  uint8_t kind = 0;
  uint8_t padding = 0;
  uint16_t payload_bytes = 0;
  uint16_t text_bytes = 0;
  uint8_t more_padding[6] = {};
};
static_assert(sizeof(Head) == MeetingRecord::kHeadBytes);
constexpr size_t kCompared = offsetof(Head, padding);  // the bytes that are equal where the operations are

}  // namespace

void write_meeting_record(const MeetingRecord& record, std::string& bytes) {
  constexpr size_t kMostBytes = std::numeric_limits<uint16_t>::max();
  Head head;
  if (record.digest.size() > sizeof head.digest || record.payload.size() > kMostBytes ||
      record.text.size() > kMostBytes) {
    throw_error(
        "meeting: a record has {} bytes of digest, {} of payload and {} of text; expected at most {}, {} and {}; "
        "shorten them",
        record.digest.size(), record.payload.size(), record.text.size(), sizeof head.digest, kMostBytes, kMostBytes);
  }
  record.digest.copy(head.digest, sizeof head.digest);
  head.group = record.group;
  head.kind = record.kind;
  head.payload_bytes = static_cast<uint16_t>(record.payload.size());
  head.text_bytes = static_cast<uint16_t>(record.text.size());
  bytes.assign(reinterpret_cast<const char*>(&head), sizeof head);
  bytes.append(record.payload).append(record.text);
}

MeetingRecord read_meeting_record(std::string_view bytes) {
  Head head;
  bytes.copy(reinterpret_cast<char*>(&head), sizeof head);  // up to the end of the bytes
  MeetingRecord record{.digest = bytes.substr(0, sizeof head.digest), .group = head.group, .kind = head.kind};
  bytes.remove_prefix(std::min(bytes.size(), sizeof head));
  record.payload = bytes.substr(0, head.payload_bytes);
  bytes.remove_prefix(record.payload.size());
  record.text = bytes.substr(0, head.text_bytes);
  return record;
}

bool is_same_meeting(std::string_view one, std::string_view other) {
  return one.substr(0, kCompared) == other.substr(0, kCompared);
}

}  // namespace artifex_devices
