// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace artifex_devices {

/// What a process sends to the others of its group when it comes to an operation: they compare the records. Its bytes
/// are a head of fixed size, the payload and the text. Processes of one job have the same byte order.
struct MeetingRecord {
  static constexpr int64_t kHeadBytes = 48;

  std::string_view digest = {};   // equal where the operations are; at most 32 bytes, of which the others are zeros
  uint32_t group = 0;             // equal in all processes of the group
  uint8_t kind = 0;               // whether it comes or refuses
  std::string_view payload = {};  // data for the others; at most 65,535 bytes, as the text
  std::string_view text = {};     // the operation in words, for messages
};

/// Replaces `bytes` by those of a record. Throws InvalidArgument for parts that are too long.
void write_meeting_record(const MeetingRecord& record, std::string& bytes);

/// The record in these bytes, which must outlive it. Parts that the bytes do not have are empty.
MeetingRecord read_meeting_record(std::string_view bytes);

/// Whether the processes that have sent these records come to the same operation: digest, group and kind are equal.
bool is_same_meeting(std::string_view one, std::string_view other);

}  // namespace artifex_devices
