// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/collective/shared_meeting.h"

#include <algorithm>
#include <utility>

namespace artifex_devices {

SharedMeeting::SharedMeeting(std::shared_ptr<SharedLanes> lanes, std::vector<int64_t> others, uint32_t group)
    : lanes_(std::move(lanes)), others_(std::move(others)), group_(group) {}

void SharedMeeting::start(MeetingRecord record) {
  record.group = group_;
  write_meeting_record(record, sent_);
  lanes_->post(others_, sent_);
}

bool SharedMeeting::all_same() const {
  return std::all_of(others_.begin(), others_.end(),
                     [&](int64_t other) { return is_same_meeting(sent_, lanes_->next(other)); });
}

void SharedMeeting::release() {
  for (const int64_t other : others_) lanes_->release(other);
}

}  // namespace artifex_devices
