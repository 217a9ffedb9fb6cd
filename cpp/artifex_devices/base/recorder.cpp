// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/base/recorder.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <utility>
#include <vector>

#include "artifex_devices/base/fork.h"

namespace artifex_devices {
namespace {

constinit Mutex<"recorder"> g_recorder_mutex;
constinit std::atomic<uint64_t> g_trace_meetings{0};
thread_local ProcessIndex t_trace_process;

// Never destroyed: a sink may outlive static destruction.
std::vector<RecorderSink*>& g_sinks = *new std::vector<RecorderSink*>;
HeldOverFork g_recorder_held_over_fork(g_recorder_mutex);

}  // namespace

constinit std::atomic<uint8_t> RecorderSink::wanted_by_any_{0};

/// Calls the sinks.
class Recorder {
 public:
  template <class Take, class Event>
  static void give(Recorded what, Take take, const Event& event) {
    const std::lock_guard lock(g_recorder_mutex);
    for (RecorderSink* sink : g_sinks) {
      if ((static_cast<uint8_t>(sink->wanted_) & static_cast<uint8_t>(what)) != 0) (sink->*take)(event);
    }
  }

  static void give(const TraceEvent& event) { give(Recorded::kSpans, &RecorderSink::take_span, event); }
  static void give(const RecordedTransfer& transfer) {
    give(Recorded::kTransfers, &RecorderSink::take_transfer, transfer);
  }
  static void give(const TransferEnd& end) { give(Recorded::kTransferEnds, &RecorderSink::take_transfer_end, end); }
  static void give(const MemoryChange& change) { give(Recorded::kMemory, &RecorderSink::take_memory, change); }
};

std::unique_lock<Mutex<"recorder">> RecorderSink::lock() { return std::unique_lock(g_recorder_mutex); }

void RecorderSink::attach_locked(Recorded wanted) {
  g_sinks.push_back(this);
  wanted_ = wanted;
  sum_up_locked();
}

void RecorderSink::detach_locked() noexcept {
  std::erase(g_sinks, this);
  wanted_ = {};
  sum_up_locked();
}

void RecorderSink::sum_up_locked() noexcept {
  Recorded all = {};
  for (const RecorderSink* sink : g_sinks) all = all | sink->wanted_;
  wanted_by_any_.store(static_cast<uint8_t>(all), std::memory_order_relaxed);
}

void record(TraceEvent event) noexcept {
  if (event.process.is_none()) event.process = t_trace_process;
  if (event.thread == 0) event.thread = trace_thread();
  Recorder::give(event);
}

void record(const RecordedTransfer& transfer) { Recorder::give(transfer); }
void record(const TransferEnd& end) noexcept { Recorder::give(end); }
void record(const MemoryChange& change) noexcept { Recorder::give(change); }

int64_t trace_thread() noexcept { return static_cast<int64_t>(::syscall(SYS_gettid)); }

void set_trace_process(ProcessIndex process) noexcept { t_trace_process = process; }

uint64_t new_trace_meeting() noexcept { return g_trace_meetings.fetch_add(1, std::memory_order_relaxed) + 1; }

}  // namespace artifex_devices
