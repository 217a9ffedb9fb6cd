// SPDX-License-Identifier: Apache-2.0
// Traces that run out of memory.
#include <optional>
#include <string>
#include <vector>

#include "artifex_devices/base/caller_line.h"
#include "artifex_devices/base/event.h"
#include "artifex_devices/transfer/trace_recording.h"
#include "failing.h"

namespace artifex_devices::faults {
namespace {

TEST(TracesWithoutMemory, LackAWaitWhoseLineCannotBeRead) {
  set_caller_line_source([] { return std::optional(CallerLine{std::string(100, 'x'), 7}); });
  Event event;
  TraceRecording recording(ProcessIndex(0), Client::make(Machine::live(), {.num_devices = 1}));
  for (int64_t n = 1; n <= 6; ++n) {
    const Failing failing(Call::kNew, n, true);
    static_cast<void>(event.wait_for(1e-6));  // adds an event at its end
  }
  EXPECT_FALSE(event.wait_for(1e-6));
  set_caller_line_source(nullptr);
  const std::vector<TraceEvent> events = recording.events();
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events.back().name, "wait for data");
  EXPECT_EQ(events.back().file, std::string(100, 'x'));
  EXPECT_EQ(events.back().line, 7);
}

}  // namespace
}  // namespace artifex_devices::faults
