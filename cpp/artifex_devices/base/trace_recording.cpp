// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/base/trace_recording.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <mutex>
#include <utility>

#include "artifex_devices/base/fork.h"
#include "artifex_devices/base/mutex.h"

namespace artifex_devices {
namespace {

constinit Mutex<"trace recordings"> g_traces_mutex;
constinit std::atomic<uint64_t> g_trace_meetings{0};
thread_local int t_trace_process = -1;

// Never destroyed: a recording may outlive static destruction.
std::vector<TraceRecording*>& g_open_traces = *new std::vector<TraceRecording*>;
HeldOverFork g_traces_held_over_fork(g_traces_mutex);

}  // namespace

// What adds to recordings. All members need the lock.
class OpenTraces {
 public:
  static void add(const std::shared_ptr<TraceEvent>& event) noexcept {
    for (TraceRecording* trace : g_open_traces) {
      if (event->process < 0) event->process = trace->process_;
      push(trace, &trace->events_, event);
    }
  }

  static void add(const TraceMemory& value) noexcept {
    for (TraceRecording* trace : g_open_traces) push(trace, &trace->memory_, value);
  }

 private:
  template <class T>
  static void push(TraceRecording* trace, std::vector<T>* values, const T& value) noexcept {
    try {
      if (values->size() < TraceRecording::kMostEvents) return values->push_back(value);
    } catch (const std::bad_alloc&) {  // counted below
    }
    ++trace->dropped_;
  }
};

constinit std::atomic<int> TraceRecording::open_count{0};

TraceRecording::TraceRecording(int process) : process_(process) {
  const std::lock_guard lock(g_traces_mutex);
  g_open_traces.push_back(this);
  open_count.fetch_add(1, std::memory_order_relaxed);
}

TraceRecording::~TraceRecording() { stop(); }

void TraceRecording::stop() noexcept {
  const std::lock_guard lock(g_traces_mutex);
  if (!std::exchange(is_open_, false)) return;
  std::erase(g_open_traces, this);
  open_count.fetch_sub(1, std::memory_order_relaxed);
}

std::vector<TraceEvent> TraceRecording::events() const {
  std::vector<TraceEvent> result;
  {
    const std::lock_guard lock(g_traces_mutex);
    result.reserve(events_.size());
    for (const auto& event : events_) result.push_back(*event);
  }
  std::ranges::stable_sort(result, {}, &TraceEvent::begin_ns);
  return result;
}

std::vector<TraceMemory> TraceRecording::memory() const {
  const std::lock_guard lock(g_traces_mutex);
  return memory_;
}

int64_t TraceRecording::dropped() const {
  const std::lock_guard lock(g_traces_mutex);
  return dropped_;
}

int64_t trace_clock_ns() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

int64_t trace_thread() noexcept { return static_cast<int64_t>(::syscall(SYS_gettid)); }

void set_trace_process(int process) noexcept { t_trace_process = process; }

uint64_t new_trace_meeting() noexcept { return g_trace_meetings.fetch_add(1, std::memory_order_relaxed) + 1; }

std::shared_ptr<TraceEvent> add_trace(TraceEvent event) noexcept {
  try {
    if (event.process < 0) event.process = t_trace_process;
    if (event.thread == 0) event.thread = trace_thread();
    auto shared = std::make_shared<TraceEvent>(std::move(event));
    const std::lock_guard lock(g_traces_mutex);
    OpenTraces::add(shared);
    return shared;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void end_trace(const std::shared_ptr<TraceEvent>& event, int64_t moved_bytes) noexcept {
  if (!event) return;
  const int64_t now_ns = trace_clock_ns();
  const std::lock_guard lock(g_traces_mutex);
  if (event->end_ns != 0) return;
  event->end_ns = now_ns;
  event->moved_bytes = moved_bytes;
}

void add_trace_memory(int process, const std::string& device, int64_t bytes) noexcept {
  const int64_t now_ns = trace_clock_ns();
  try {
    const TraceMemory value{process, device, now_ns, bytes};
    const std::lock_guard lock(g_traces_mutex);
    OpenTraces::add(value);
  } catch (const std::bad_alloc&) {  // a value is missing from the picture
  }
}

}  // namespace artifex_devices
