// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/collective/shared_meeting_point.h"

#include <algorithm>
#include <utility>

namespace artifex_devices {

SharedMeetingPoint::SharedMeetingPoint(std::shared_ptr<SharedChannels> channels, std::vector<int64_t> others,
                                       uint32_t group)
    : channels_(std::move(channels)), others_(std::move(others)), group_(group) {}

void SharedMeetingPoint::start(MeetingRecord record) {
  record.group = group_;
  write_meeting_record(record, sent_);
  channels_->post(others_, sent_);
}

bool SharedMeetingPoint::all_same() const {
  return std::all_of(others_.begin(), others_.end(),
                     [&](int64_t other) { return is_same_meeting(sent_, channels_->next(other)); });
}

void SharedMeetingPoint::release() {
  for (const int64_t other : others_) channels_->release(other);
}

}  // namespace artifex_devices
