// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "artifex_devices/collective/meeting_record.h"
#include "artifex_devices/collective/shared_channels.h"

namespace artifex_devices {

/// Consecutive exchanges of records between processes of one host, through their shared memory. For one thread at a
/// time.
///
/// Example: meeting.start({.digest = digest, .payload = payload, .text = "psum"}); if (meeting.wait(1ms) &&
/// meeting.all_same()) use(meeting.payload(0)); meeting.release();
class SharedMeetingPoint {
 public:
  /// `others`: the numbers of the other members in the channels, ascending by process. `group`: see MeetingRecord.
  SharedMeetingPoint(std::shared_ptr<SharedChannels> channels, std::vector<int64_t> others, uint32_t group);

  std::span<const int64_t> others() const noexcept { return others_; }

  /// Sends this process's record to the other members, with the group of the meeting. Does not wait.
  void start(MeetingRecord record);
  /// The record that was sent last.
  std::string_view sent() const noexcept { return sent_; }
  /// Waits until the record of each other member has arrived or the timeout expires. Returns whether they have arrived.
  bool wait(std::chrono::nanoseconds timeout) { return channels_->wait(others_, timeout); }

  /// Whether the records of all members are of the same operation. This function and the next ones need the records of
  /// all members.
  bool all_same() const;
  /// The payload of a member, by its place in `others`; valid until `release`.
  std::string_view payload(size_t other) const { return read_meeting_record(channels_->next(others_[other])).payload; }
  /// Ends the exchange: the memory of the records is used again.
  void release();

 private:
  std::shared_ptr<SharedChannels> channels_;
  std::vector<int64_t> others_;
  uint32_t group_;
  std::string sent_;
};

}  // namespace artifex_devices
