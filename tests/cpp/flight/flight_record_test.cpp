// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/flight/flight_record.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "artifex_devices/base/file.h"
#include "artifex_devices/flight/flight_format.h"

namespace artifex_devices {
namespace {

class FlightRecords : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "flight-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path(int process) const {
    return (folder_ / ("process_" + std::to_string(process) + ".flight")).string();
  }

  // The records of a job of as many processes as there are lists of meetings, all of one group.
  std::vector<FlightRecord> records_of(const std::vector<std::vector<uint64_t>>& digests) {
    std::vector<int> everyone;
    for (int process = 0; process < std::ssize(digests); ++process) everyone.push_back(process);
    std::vector<FlightRecord> records;
    for (const int process : everyone) {
      FlightRecorder recorder(path(process), process, static_cast<int>(digests.size()), "host");
      FlightGroup group(everyone);
      for (const uint64_t digest : digests[static_cast<size_t>(process)]) {
        const std::string text = "operation " + std::to_string(digest);
        recorder.end(recorder.begin_meeting(group, {.text = text, .digest = digest}), FlightOutcome::kDone);
      }
      records.push_back(read_flight_record(path(process)));
    }
    return records;
  }

  std::filesystem::path folder_;
};

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST_F(FlightRecords, HaveWhatWasWritten) {
  FlightRecorder recorder(path(1), 1, 4, "a-host");
  FlightGroup group({0, 1, 3});
  const uint64_t meeting =
      recorder.begin_meeting(group, {.text = "psum of float32[4]", .digest = 77, .file = "a.py", .line = 12});
  recorder.end(meeting, FlightOutcome::kDone);
  const uint64_t exchange = recorder.begin_exchange({.text = "psum", .route = FlightRoute::kMessages});

  const FlightRecord record = read_flight_record(path(1));
  EXPECT_EQ(record.process, 1);
  EXPECT_EQ(record.process_count, 4);
  EXPECT_EQ(record.pid, getpid());
  EXPECT_EQ(record.host, "a-host");
  EXPECT_FALSE(record.has_left);
  ASSERT_EQ(record.events.size(), 2U);
  const FlightEvent& first = record.events[0];
  EXPECT_EQ(first.number, meeting);
  EXPECT_EQ(first.processes, "0-1,3");
  EXPECT_EQ(first.operation, "psum of float32[4]");
  EXPECT_EQ(first.digest, 77U);
  EXPECT_EQ(first.turn, 1U);
  EXPECT_EQ(first.file, "a.py");
  EXPECT_EQ(first.line, 12);
  EXPECT_EQ(first.outcome, FlightOutcome::kDone);
  EXPECT_GE(first.begin_ns, record.begin_ns);
  EXPECT_GE(first.end_ns, first.begin_ns);
  const FlightEvent& second = record.events[1];
  EXPECT_EQ(second.number, exchange);
  EXPECT_EQ(second.kind, FlightKind::kExchange);
  EXPECT_EQ(second.route, FlightRoute::kMessages);
  EXPECT_EQ(second.bytes, 0U);
  EXPECT_EQ(second.processes, "");
  EXPECT_EQ(second.turn, 0U);
  EXPECT_EQ(second.outcome, FlightOutcome::kLasts);
  EXPECT_EQ(second.end_ns, 0);

  recorder.end(exchange, FlightOutcome::kFailed, 4096);
  EXPECT_EQ(read_flight_record(path(1)).events[1].bytes, 4096U);
  EXPECT_EQ(read_flight_record(path(1)).events[1].outcome, FlightOutcome::kFailed);
  recorder.leave();
  EXPECT_TRUE(read_flight_record(path(1)).has_left);
}

TEST_F(FlightRecords, KeepTheLastEventsAndCutLongTexts) {
  FlightRecorder recorder(path(0), 0, 1, std::string(200, 'h'));
  FlightGroup group({0});
  const std::string file = "/a/long/folder" + std::string(100, 'x') + "/train.py";
  constexpr uint64_t kEvents = 3000;
  for (uint64_t i = 1; i <= kEvents; ++i) {
    recorder.end(recorder.begin_meeting(group, {.text = std::string(500, 't'), .digest = i, .file = file}),
                 FlightOutcome::kDone);
  }
  recorder.end(1, FlightOutcome::kFailed);  // its slot belongs to another event by now
  const FlightRecord record = read_flight_record(path(0));
  EXPECT_EQ(record.event_count, kEvents);
  EXPECT_EQ(record.host, std::string(sizeof(FlightHeader::host), 'h'));
  ASSERT_EQ(record.events.size(), kFlightEventsKept);
  for (size_t i = 0; i < record.events.size(); ++i) {
    const uint64_t number = kEvents - kFlightEventsKept + 1 + i;
    EXPECT_EQ(record.events[i].number, number);
    EXPECT_EQ(record.events[i].digest, number);
    EXPECT_EQ(record.events[i].outcome, FlightOutcome::kDone);
    EXPECT_EQ(record.events[i].operation, std::string(sizeof(FlightTexts::operation), 't'));
    EXPECT_EQ(record.events[i].file, "..." + file.substr(file.size() - (sizeof(FlightTexts::file) - 3)));
  }
}

TEST_F(FlightRecords, SurviveAKilledProcess) {
  const pid_t child = fork();
  if (child == 0) {
    FlightRecorder recorder(path(2), 2, 3, "host");
    FlightGroup group({0, 1, 2});
    recorder.begin_meeting(group, {.text = "the last one", .digest = 5});
    raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(WTERMSIG(status), SIGKILL);
  const FlightRecord record = read_flight_record(path(2));
  ASSERT_EQ(record.events.size(), 1U);
  EXPECT_EQ(record.events[0].operation, "the last one");
  EXPECT_EQ(record.events[0].outcome, FlightOutcome::kLasts);
}

TEST_F(FlightRecords, CanBeWrittenByThreads) {
  FlightRecorder recorder(path(0), 0, 1, "host");
  std::vector<std::jthread> threads;
  for (uint64_t thread = 1; thread <= 4; ++thread) {
    threads.emplace_back([&, thread] {
      FlightGroup group({0});
      for (int i = 0; i < 200; ++i) {
        recorder.end(recorder.begin_meeting(group, {.text = "text", .digest = thread}), FlightOutcome::kDone);
      }
    });
  }
  threads.clear();
  const FlightRecord record = read_flight_record(path(0));
  ASSERT_EQ(record.events.size(), 800U);
  std::vector<int> counts(5);
  for (size_t i = 0; i < record.events.size(); ++i) {
    EXPECT_EQ(record.events[i].number, i + 1);
    ++counts.at(record.events[i].digest);
  }
  EXPECT_EQ(counts, (std::vector<int>{0, 200, 200, 200, 200}));
}

TEST_F(FlightRecords, KeepEachEventWholeWhileThreadsWriteOverTheEventsOfOthers) {
  constexpr uint64_t kEach = 20'000;  // so that the slots of all events are taken again and again
  FlightRecorder recorder(path(0), 0, 1, "host");
  std::vector<std::jthread> threads;
  for (uint64_t thread = 1; thread <= 4; ++thread) {
    threads.emplace_back([&, thread] {
      FlightGroup group({0});
      for (uint64_t i = 1; i <= kEach; ++i) {
        const uint64_t mark = thread * kEach + i;
        const uint64_t event = recorder.begin_meeting(group, {.text = "text", .digest = mark});
        recorder.end(event, FlightOutcome::kDone, mark);
      }
    });
  }
  threads.clear();
  const FlightRecord record = read_flight_record(path(0));
  EXPECT_EQ(record.events.size(), kFlightEventsKept);
  for (const FlightEvent& event : record.events) {
    EXPECT_EQ(event.bytes, event.digest) << event.number;
    EXPECT_EQ(event.outcome, FlightOutcome::kDone) << event.number;
    EXPECT_GT(event.number, 4 * kEach - kFlightEventsKept);
  }
}

TEST_F(FlightRecords, DoNotEndAProcessWhoseFileIsTruncated) {
  const pid_t child = fork();
  if (child == 0) {
    FlightRecorder recorder(path(2), 2, 3, "host");
    FlightGroup group({0, 1, 2});
    const uint64_t first = recorder.begin_meeting(group, {.text = "before"});
    std::filesystem::resize_file(path(2), 0);
    recorder.end(first, FlightOutcome::kDone);
    recorder.begin_meeting(group, {.text = "after"});
    recorder.leave();
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_THROW(read_flight_record(path(2)), InvalidArgument);
}

TEST_F(FlightRecords, AreLockedWhileTheirRecorderExists) {
  const auto can_lock = [&] {
    const int file = ::open(path(0).c_str(), O_RDWR | O_CLOEXEC);
    const bool locked = ::flock(file, LOCK_EX | LOCK_NB) == 0;
    ::close(file);
    return locked;
  };
  {
    const FlightRecorder recorder(path(0), 0, 1, "host");
    EXPECT_FALSE(can_lock());
    read_flight_record(path(0));  // a reader does not release it
    EXPECT_FALSE(can_lock());
  }
  EXPECT_TRUE(can_lock());
}

TEST_F(FlightRecords, AnEndDoesNotChangeALaterEventThatTakesItsSlotMeanwhile) {
  constexpr uint64_t kEvents = 3 * kFlightEventsKept;
  for (int round = 0; round < 20; ++round) {
    FlightRecorder recorder(path(round), round, round + 1, "host");
    std::atomic<uint64_t> begun = 0;
    std::jthread beginner([&] {
      while (begun < kEvents) begun = recorder.begin_exchange({.text = "text"});
    });
    for (uint64_t number = 1; number + kFlightEventsKept <= kEvents; ++number) {
      while (begun < number + kFlightEventsKept - 1) {
      }
      recorder.end(number, FlightOutcome::kFailed, 1);  // the next event of the other thread takes its slot
    }
    beginner.join();
    for (const FlightEvent& event : read_flight_record(path(round)).events) {
      EXPECT_EQ(event.outcome, FlightOutcome::kLasts) << event.number;
      EXPECT_EQ(event.bytes, 0U) << event.number;
      EXPECT_EQ(event.end_ns, 0) << event.number;
    }
  }
}

TEST_F(FlightRecords, RefuseAFileThatIsThere) {
  std::ofstream(path(0)) << "something else";
  EXPECT_THROW(FlightRecorder(path(0), 0, 1, "host"), FileError);
  EXPECT_EQ(bytes_of(path(0)), "something else");
}

TEST_F(FlightRecords, RefuseDamagedFiles) {
  {
    const FlightRecorder recorder(path(0), 0, 2, "host");
  }
  const std::string good = bytes_of(path(0));
  EXPECT_EQ(parse_flight_record(good, "file").events.size(), 0U);
  EXPECT_THROW(parse_flight_record("", "file"), InvalidArgument);
  EXPECT_THROW(parse_flight_record(good.substr(0, good.size() - 1), "file"), InvalidArgument);
  const auto damaged = [&](size_t offset, uint32_t value) {
    std::string bytes = good;
    std::memcpy(bytes.data() + offset, &value, sizeof(value));
    return bytes;
  };
  EXPECT_THROW(parse_flight_record(damaged(offsetof(FlightHeader, magic), 0), "file"), InvalidArgument);
  EXPECT_THROW(parse_flight_record(damaged(offsetof(FlightHeader, version), 2), "file"), InvalidArgument);
  EXPECT_THROW(parse_flight_record(damaged(offsetof(FlightHeader, capacity), 0), "file"), InvalidArgument);
  EXPECT_THROW(parse_flight_record(damaged(offsetof(FlightHeader, capacity), 0xFFFFFFFF), "file"), InvalidArgument);
  EXPECT_THROW(parse_flight_record(damaged(offsetof(FlightHeader, process), 2), "file"), InvalidArgument);
}

TEST_F(FlightRecords, NameTheProcessBehind) {
  const auto reports = compare_flight_records(records_of({{1, 2, 3}, {1, 2}, {1, 2, 3}}));
  ASSERT_EQ(reports.size(), 1U);
  EXPECT_EQ(reports[0].processes, "0-2");
  ASSERT_TRUE(reports[0].common.has_value());
  EXPECT_EQ(reports[0].common->operation, "operation 2");
  EXPECT_EQ(reports[0].behind, std::vector<int>{1});
  EXPECT_FALSE(reports[0].is_apart);
  EXPECT_EQ(reports[0].members[2].next->operation, "operation 3");
}

TEST_F(FlightRecords, TakeTheLastCommonMeeting) {
  const auto reports = compare_flight_records(records_of({{1, 2, 3}, {1, 4, 3}}));
  ASSERT_EQ(reports.size(), 1U);
  EXPECT_EQ(reports[0].common->operation, "operation 3");  // the last one counts
  const auto others = compare_flight_records({});
  EXPECT_TRUE(others.empty());
}

TEST_F(FlightRecords, NameTheProcessesApart) {
  const auto reports = compare_flight_records(records_of({{1, 2}, {1, 4}}));
  ASSERT_EQ(reports.size(), 1U);
  EXPECT_EQ(reports[0].common->operation, "operation 1");
  EXPECT_TRUE(reports[0].is_apart);
  EXPECT_TRUE(reports[0].behind.empty());
  EXPECT_EQ(reports[0].members[1].next->operation, "operation 4");
}

TEST_F(FlightRecords, NameAProcessWithoutMeetings) {
  const auto reports = compare_flight_records(records_of({{1}, {}}));
  ASSERT_EQ(reports.size(), 1U);
  EXPECT_FALSE(reports[0].common.has_value());
  EXPECT_EQ(reports[0].behind, std::vector<int>{1});
  EXPECT_EQ(reports[0].members[0].next->operation, "operation 1");
}

TEST_F(FlightRecords, FindNothingWhereAllDidTheSame) {
  const auto reports = compare_flight_records(records_of({{1, 2}, {1, 2}}));
  ASSERT_EQ(reports.size(), 1U);
  EXPECT_EQ(reports[0].common->turn, 2U);
  EXPECT_TRUE(reports[0].behind.empty());
  EXPECT_FALSE(reports[0].is_apart);
}

}  // namespace
}  // namespace artifex_devices
