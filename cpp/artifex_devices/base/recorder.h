// SPDX-License-Identifier: Apache-2.0
// What programs do, for its observers: traces, reports of transfers, windows of memory. Each is a sink. An operation
// asks `is_recorded`, which is one load while nothing watches, and gives its event to all sinks that want it.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

#include "artifex_devices/base/clock.h"
#include "artifex_devices/base/id.h"
#include "artifex_devices/base/mutex.h"

namespace artifex_devices {

enum class TraceKind : uint8_t { kTransfer, kCollective, kMeeting, kExchange, kWait, kPrefetch, kSpan };

/// Something that took time. Times are nanoseconds of CLOCK_MONOTONIC.
struct TraceEvent {
  static constexpr uint64_t kSharedMeeting = uint64_t{1} << 62;  // in numbers that are the same in all processes

  TraceKind kind = TraceKind::kSpan;
  ProcessIndex process = {};  // none: the thread's or the recording's process
  std::string device = {};    // "gpu:3"; "" for an event of a thread
  int64_t thread = 0;         // thread id of the operating system
  std::string name = {};      // "psum float32(8,) over x"
  std::string detail = {};    // "host -> gpu:3", or the processes of a meeting
  int64_t begin_ns = 0;       // of a participant of a collective: its arrival
  int64_t end_ns = 0;         // 0 while it lasts
  int64_t busy_ns = 0;        // of a participant: how long it ran before its arrival, without waiting times
  int64_t planned_bytes = 0;
  int64_t moved_bytes = 0;  // known at the end
  uint64_t meeting = 0;     // equal for all events of a meeting, in all processes with kSharedMeeting; 0: none
  std::string file = {};    // line of the program
  int line = 0;
};

struct MemoryChange;      // device/client.h
struct RecordedTransfer;  // transfer/recorded_transfer.h
struct TransferEnd;

/// Kinds of events that a sink receives, as bits.
enum class Recorded : uint8_t { kSpans = 1, kTransfers = 2, kTransferEnds = 4, kMemory = 8 };
constexpr Recorded operator|(Recorded a, Recorded b) noexcept {
  return static_cast<Recorded>(static_cast<uint8_t>(a) | static_cast<uint8_t>(b));
}

/// Receives the events of all threads and worlds from attach to detach. The recorder calls sinks under its one lock,
/// which also guards the data of the sinks. They must never wait. A sink that is open at a fork
/// continues in the child.
class RecorderSink {
 public:
  RecorderSink(const RecorderSink&) = delete;
  RecorderSink& operator=(const RecorderSink&) = delete;

 protected:
  RecorderSink() = default;
  virtual ~RecorderSink() = default;

  static std::unique_lock<Mutex<"recorder">> lock();
  void attach_locked(Recorded wanted);
  /// Does nothing for a sink that is not attached.
  void detach_locked() noexcept;
  bool is_attached_locked() const noexcept { return wanted_ != Recorded{}; }

 private:
  friend class Recorder;
  friend bool is_recorded(Recorded what) noexcept;
  virtual void take_span(const TraceEvent&) noexcept {}
  virtual void take_transfer(const RecordedTransfer&) {}
  virtual void take_transfer_end(const TransferEnd&) noexcept {}
  virtual void take_memory(const MemoryChange&) noexcept {}

  static void sum_up_locked() noexcept;
  static constinit std::atomic<uint8_t> wanted_by_any_;

  Recorded wanted_ = {};
};

/// Whether a sink receives such events. Check it before each call of `record`, and before preparing its argument.
inline bool is_recorded(Recorded what) noexcept {
  return (RecorderSink::wanted_by_any_.load(std::memory_order_relaxed) & static_cast<uint8_t>(what)) != 0;
}

/// Pass an event to the sinks that receive its kind. The caller must not hold a lock that another thread holds while it
/// records.
void record(TraceEvent event) noexcept;
void record(const RecordedTransfer& transfer);
void record(const TransferEnd& end) noexcept;
void record(const MemoryChange& change) noexcept;

/// Returns the current time while such events are recorded, else 0.
inline int64_t recorded_begin_ns(Recorded what) noexcept { return is_recorded(what) ? clock_ns() : 0; }
/// Returns the operating system's id of this thread.
int64_t trace_thread() noexcept;
/// Sets the process of this thread's events; -1 for the recording's process. Each simulated process has its own thread.
void set_trace_process(ProcessIndex process) noexcept;
/// Returns a number for `TraceEvent::meeting` that this process has not used.
uint64_t new_trace_meeting() noexcept;

}  // namespace artifex_devices
