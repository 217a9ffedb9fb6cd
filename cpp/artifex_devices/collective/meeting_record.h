// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace artifex_devices {

/// Record that each process of a group sends to the other processes when it reaches an operation. The receivers compare
/// the records. A record consists of a head of fixed size, the payload and the text. Processes of one job have the same
/// byte order.
struct MeetingRecord {
  static constexpr int64_t kHeadBytes = 48;

  std::string_view digest = {};   // equal for equal operations; at most 32 bytes, padded with zeros
  uint32_t group = 0;             // equal in all processes of the group
  uint8_t kind = 0;               // whether the process takes part or refuses
  std::string_view payload = {};  // data for the other processes; at most 65,535 bytes, like the text
  std::string_view text = {};     // the operation in words, for messages
};

/// Replaces `bytes` by the bytes of a record. Throws InvalidArgument for parts that are too long.
void write_meeting_record(const MeetingRecord& record, std::string& bytes);

/// Returns a view of the record in `bytes`. Missing parts are empty.
MeetingRecord read_meeting_record(std::string_view bytes);

/// Whether two records are of the same operation: their digests, groups and kinds are equal.
bool is_same_meeting(std::string_view one, std::string_view other);

}  // namespace artifex_devices
