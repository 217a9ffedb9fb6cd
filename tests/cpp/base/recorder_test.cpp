// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/base/recorder.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "forked_child.h"

namespace artifex_devices {
namespace {

/// Keeps the spans that it gets.
class Spans final : RecorderSink {
 public:
  explicit Spans(Recorded wanted = Recorded::kSpans) {
    const auto held = lock();
    attach_locked(wanted);
  }
  ~Spans() { stop(); }
  void stop() {
    const auto held = lock();
    detach_locked();
  }
  std::vector<TraceEvent> events;

 private:
  void take_span(const TraceEvent& event) noexcept override { events.push_back(event); }
};

TEST(Recorder, IsAskedForWhatASinkWantsOnly) {
  EXPECT_FALSE(is_recorded(Recorded::kSpans));
  EXPECT_EQ(recorded_begin_ns(Recorded::kSpans), 0);
  {
    const Spans spans(Recorded::kSpans | Recorded::kMemory);
    EXPECT_TRUE(is_recorded(Recorded::kSpans));
    EXPECT_TRUE(is_recorded(Recorded::kMemory));
    EXPECT_FALSE(is_recorded(Recorded::kTransfers));
    EXPECT_GT(recorded_begin_ns(Recorded::kSpans), 0);
    const Spans others;
  }
  EXPECT_FALSE(is_recorded(Recorded::kSpans));
}

TEST(Recorder, GivesEachEventToAllSinksThatWantIt) {
  Spans first;
  record(TraceEvent{.name = "a"});
  Spans second;
  const Spans of_memory(Recorded::kMemory);
  record(TraceEvent{.name = "b"});
  first.stop();
  first.stop();
  record(TraceEvent{.name = "c"});
  ASSERT_EQ(first.events.size(), 2U);
  EXPECT_EQ(first.events[1].name, "b");
  ASSERT_EQ(second.events.size(), 2U);
  EXPECT_EQ(second.events[1].name, "c");
  EXPECT_TRUE(of_memory.events.empty());
}

TEST(Recorder, KnowsTheThreadAndTheProcessOfAnEvent) {
  const Spans spans;
  record(TraceEvent{});
  set_trace_process(ProcessIndex(3));
  record(TraceEvent{});
  record(TraceEvent{.process = ProcessIndex(1), .thread = 7});
  set_trace_process(ProcessIndex());
  ASSERT_EQ(spans.events.size(), 3U);
  EXPECT_EQ(spans.events[0].process, ProcessIndex());
  EXPECT_EQ(spans.events[0].thread, trace_thread());
  EXPECT_EQ(spans.events[1].process, ProcessIndex(3));
  EXPECT_EQ(spans.events[2].process, ProcessIndex(1));
  EXPECT_EQ(spans.events[2].thread, 7);
}

TEST(Recorder, GoesOnInAForkedChild) {
  ARTIFEX_SKIP_WITHOUT_FORK();
  const Spans spans;
  record(TraceEvent{.name = "parent"});
  EXPECT_EQ(in_forked_child([&] {
              record(TraceEvent{.name = "child"});
              return spans.events.front().name + " " + spans.events.back().name;
            }),
            "parent child");
  EXPECT_EQ(spans.events.size(), 1U);
}

}  // namespace
}  // namespace artifex_devices
