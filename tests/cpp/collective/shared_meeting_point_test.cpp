// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/collective/shared_meeting_point.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "artifex_devices/base/error.h"

namespace artifex_devices {
namespace {

using std::chrono_literals::operator""s;

constexpr uint32_t kGroup = 7;
constexpr uint8_t kComes = 1;
constexpr uint8_t kRefuses = 2;

std::string bytes_of(const MeetingRecord& record) {
  std::string bytes;
  write_meeting_record(record, bytes);
  return bytes;
}

/// The meetings of all of these processes, as if each were in its own.
std::vector<std::unique_ptr<SharedMeetingPoint>> meetings_of(int64_t count) {
  std::vector<int> files;
  for (int64_t i = 0; i < count; ++i) files.push_back(SharedChannels::create(count));
  std::vector<std::unique_ptr<SharedMeetingPoint>> made;
  for (int64_t i = 0; i < count; ++i) {
    std::vector<int64_t> others;
    for (int64_t other = 0; other < count; ++other) {
      if (other != i) others.push_back(other);
    }
    made.push_back(std::make_unique<SharedMeetingPoint>(std::make_shared<SharedChannels>(i, files), others, kGroup));
  }
  for (const int file : files) close(file);
  return made;
}

TEST(MeetingRecord, HasWhatWasWritten) {
  const std::string payload("a\0b", 3);
  const std::string bytes =
      bytes_of({.digest = "digest", .group = kGroup, .kind = kRefuses, .payload = payload, .text = "psum"});
  EXPECT_EQ(bytes.size(), static_cast<size_t>(MeetingRecord::kHeadBytes) + 7);
  const std::string longer = bytes + "anything after it";
  const MeetingRecord read = read_meeting_record(longer);
  EXPECT_EQ(read.digest, std::string("digest") + std::string(26, '\0'));
  EXPECT_EQ(read.group, kGroup);
  EXPECT_EQ(read.kind, kRefuses);
  EXPECT_EQ(read.payload, payload);
  EXPECT_EQ(read.text, "psum");
}

TEST(MeetingRecord, IsEmptyWhereBytesAreMissing) {
  const std::string bytes = bytes_of({.digest = "digest", .kind = kComes, .payload = "payload", .text = "psum"});
  EXPECT_EQ(read_meeting_record({}).digest, "");
  EXPECT_EQ(read_meeting_record({}).kind, 0);
  const MeetingRecord cut = read_meeting_record(std::string_view(bytes).substr(0, bytes.size() - 6));
  EXPECT_EQ(cut.payload, "paylo");
  EXPECT_EQ(cut.text, "");
}

TEST(MeetingRecord, RefusesPartsThatAreTooLong) {
  EXPECT_THROW(bytes_of({.digest = std::string(33, 'd')}), InvalidArgument);
  EXPECT_THROW(bytes_of({.payload = std::string(65536, 'p')}), InvalidArgument);
  EXPECT_THROW(bytes_of({.text = std::string(65536, 't')}), InvalidArgument);
  EXPECT_EQ(read_meeting_record(bytes_of({.text = std::string(65535, 't')})).text.size(), 65535);
}

TEST(MeetingRecord, IsOfTheSameMeetingWhateverItsPayloadAndText) {
  const MeetingRecord record{.digest = "d", .group = kGroup, .kind = kComes, .payload = "p", .text = "t"};
  const std::string bytes = bytes_of(record);
  EXPECT_TRUE(is_same_meeting(bytes, bytes_of({.digest = "d", .group = kGroup, .kind = kComes})));
  EXPECT_FALSE(is_same_meeting(bytes, bytes_of({.digest = "e", .group = kGroup, .kind = kComes})));
  EXPECT_FALSE(is_same_meeting(bytes, bytes_of({.digest = "d", .group = kGroup + 1, .kind = kComes})));
  EXPECT_FALSE(is_same_meeting(bytes, bytes_of({.digest = "d", .group = kGroup, .kind = kRefuses})));
}

TEST(SharedMeetingPoint, GivesEachProcessThePayloadsOfTheOthers) {
  const auto meetings = meetings_of(3);
  const std::array<std::string, 3> payloads{"zero", "", "two"};
  for (size_t i = 0; i < 3; ++i) meetings[i]->start({.digest = "psum", .kind = kComes, .payload = payloads[i]});
  for (size_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(meetings[i]->wait(60s));
    EXPECT_TRUE(meetings[i]->all_same());
    for (size_t other = 0; other < 2; ++other)
      EXPECT_EQ(meetings[i]->payload(other), payloads[other < i ? other : other + 1]);
    meetings[i]->release();
    EXPECT_FALSE(meetings[i]->wait(0s));
  }
}

TEST(SharedMeetingPoint, NoticesThatOneProcessComesToSomethingElse) {
  const auto meetings = meetings_of(3);
  for (size_t i = 0; i < 3; ++i) meetings[i]->start({.digest = i == 2 ? "pmax" : "psum", .kind = kComes});
  for (const auto& meeting : meetings) {
    ASSERT_TRUE(meeting->wait(60s));
    EXPECT_FALSE(meeting->all_same());
  }
}

TEST(SharedMeetingPoint, HasTheRecordThatItSentLast) {
  const auto meetings = meetings_of(2);
  EXPECT_EQ(meetings[0]->sent(), "");
  meetings[0]->start({.digest = "psum", .group = 99, .kind = kComes, .payload = "p", .text = "t"});
  EXPECT_EQ(meetings[0]->sent(),
            bytes_of({.digest = "psum", .group = kGroup, .kind = kComes, .payload = "p", .text = "t"}));
}

TEST(SharedMeetingPoint, IsUsedManyTimesByProcessesThatRunAtOnce) {
  constexpr int kTimes = 2000;
  const auto meetings = meetings_of(3);
  std::vector<std::thread> processes;
  for (size_t i = 0; i < 3; ++i) {
    processes.emplace_back([&, i] {
      SharedMeetingPoint& meeting = *meetings[i];
      for (int turn = 0; turn < kTimes; ++turn) {
        const std::string payload = std::to_string(turn) + " of " + std::to_string(i);
        meeting.start({.digest = std::to_string(turn), .kind = kComes, .payload = payload, .text = "psum"});
        ASSERT_TRUE(meeting.wait(60s));
        ASSERT_TRUE(meeting.all_same());
        for (size_t other = 0; other < 2; ++other) {
          const size_t process = other < i ? other : other + 1;
          ASSERT_EQ(meeting.payload(other), std::to_string(turn) + " of " + std::to_string(process));
        }
        meeting.release();
      }
    });
  }
  for (std::thread& process : processes) process.join();
}

}  // namespace
}  // namespace artifex_devices
