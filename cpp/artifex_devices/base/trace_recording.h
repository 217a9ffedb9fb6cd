// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace artifex_devices {

enum class TraceKind : uint8_t { kTransfer, kCollective, kMeeting, kExchange, kWait, kPrefetch, kSpan };

/// Something that took time. Times are nanoseconds of CLOCK_MONOTONIC.
struct TraceEvent {
  TraceKind kind = TraceKind::kSpan;
  int process = -1;         // -1: that of the thread, or of the recording
  std::string device = {};  // "gpu:3"; "" for an event of a thread
  int64_t thread = 0;       // number that the system gives the thread
  std::string name = {};    // "psum float32(8,) over x"
  std::string detail = {};  // "host -> gpu:3", or the processes of a meeting
  int64_t begin_ns = 0;     // of a participant of a collective: its arrival
  int64_t end_ns = 0;       // 0 while it lasts
  int64_t busy_ns = 0;      // of a participant: how long it ran before its arrival, without waiting for others
  int64_t planned_bytes = 0;
  int64_t moved_bytes = 0;  // known at the end
  uint64_t meeting = 0;     // equal for all that meet, within a process unless it has kSharedMeeting; 0: none
  std::string file = {};    // line of the program
  int line = 0;
};

/// Bytes of arrays on a device from a moment on.
struct TraceMemory {
  int process = 0;
  std::string device;
  int64_t time_ns = 0;
  int64_t bytes = 0;
};

/// Records events of this process from its construction to stop(). Any number may be open at once; each records the
/// events of all threads and worlds. While none is open, an operation costs one test of an atomic number.
class TraceRecording {
 public:
  static constexpr uint64_t kSharedMeeting = uint64_t{1} << 62;  // in numbers that are the same in all processes
  static constexpr size_t kMostEvents = 1'000'000;  // and as many values of memory; further ones are only counted

  /// `process`: number of the process for events of threads that have none of their own.
  explicit TraceRecording(int process);
  ~TraceRecording();
  TraceRecording(const TraceRecording&) = delete;
  TraceRecording& operator=(const TraceRecording&) = delete;

  /// Ends the recording; the events stay. Further calls do nothing.
  void stop() noexcept;
  /// The events by their begin.
  std::vector<TraceEvent> events() const;
  std::vector<TraceMemory> memory() const;
  /// Number of events and values of memory that were not recorded.
  int64_t dropped() const;

  static bool is_any_open() noexcept { return open_count.load(std::memory_order_relaxed) > 0; }

 private:
  friend class OpenTraces;
  static constinit std::atomic<int> open_count;

  int process_;
  std::vector<std::shared_ptr<TraceEvent>> events_;
  std::vector<TraceMemory> memory_;
  int64_t dropped_ = 0;
  bool is_open_ = true;
};

/// Now, by CLOCK_MONOTONIC.
int64_t trace_clock_ns() noexcept;
/// Now while a recording is open, else 0.
inline int64_t trace_begin_ns() noexcept { return TraceRecording::is_any_open() ? trace_clock_ns() : 0; }
/// Number that the system gives this thread.
int64_t trace_thread() noexcept;
/// The process to which events of this thread belong, or -1 for none in particular: a simulated process has a thread.
void set_trace_process(int process) noexcept;
/// A number for `TraceEvent::meeting` that this process has not used.
uint64_t new_trace_meeting() noexcept;

/// Adds an event to all open recordings; the caller must hold no lock that others hold while they record. Returns it
/// for `end_trace`, or null where nothing is recorded.
std::shared_ptr<TraceEvent> add_trace(TraceEvent event) noexcept;
/// Sets the end of an event to now.
void end_trace(const std::shared_ptr<TraceEvent>& event, int64_t moved_bytes) noexcept;
/// Adds a value of memory to all open recordings.
void add_trace_memory(int process, const std::string& device, int64_t bytes) noexcept;

}  // namespace artifex_devices
