// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "artifex_devices/base/mutex.h"
#include "artifex_devices/flight/flight_clock.h"

namespace artifex_devices {

struct FlightSlot;

/// In a meeting, processes agree that they do the same; an exchange moves bytes after it.
enum class FlightKind : uint8_t { kMeeting, kExchange };
/// Transport of an exchange.
enum class FlightRoute : uint8_t { kNone, kMessages, kSharedMemory };
enum class FlightOutcome : uint8_t { kLasts, kDone, kFailed };

/// A set of processes and the number of their meetings. The caller holds one for each set.
struct FlightGroup {
  explicit FlightGroup(const std::vector<int>& processes);  // ascending

  std::string processes;  // "0-3,6"
  uint32_t hash = 0;
  uint32_t meetings = 0;
};

/// Description of an operation between processes, known when it begins.
struct FlightOperation {
  std::string_view text = {};  // "psum of float32[128] over 'x'"; truncated to the field
  uint64_t digest = 0;         // equal for equal operations
  FlightRoute route = FlightRoute::kNone;
  std::string_view file = {};  // of the program; a longer path is shortened to "..." and its end
  int line = 0;
};

/// Texts of an event in the file's format: padded with zeros.
struct FlightTexts {
  char processes[24];
  char file[64];
  char operation[112];
};

/// An operation in the file's format, for operations that run repeatedly: copying it takes a tenth of the time.
struct FlightDescription {
  /// `group` is null for an exchange.
  FlightDescription(const FlightGroup* group, const FlightOperation& operation) noexcept;

  uint64_t digest;
  uint32_t line;
  uint32_t group;
  FlightKind kind;
  FlightRoute route;
  FlightTexts texts;
};

/// Writes the last 1,024 operations of this process to a file that survives any kind of exit. The beginning and the end
/// of an event are each one write of at most 256 bytes to the page cache. The file is not mapped, because an access to
/// a mapped file that another program has truncated would end the process with SIGBUS; a failed write loses its event
/// and nothing else. While the recorder exists it holds a lock (flock) on the file, which other processes can test
/// whatever their PID namespace.
///
/// Any number of threads may call it; the meetings of one group begin one at a time. A forked child must not.
class FlightRecorder {
 public:
  /// Creates the file, which must not exist, and allocates its storage. Throws FileError if that fails.
  FlightRecorder(const std::string& path, int process, int process_count, std::string_view host);
  ~FlightRecorder();
  FlightRecorder(const FlightRecorder&) = delete;
  FlightRecorder& operator=(const FlightRecorder&) = delete;

  /// Records that a meeting of a group begins, or an exchange; returns its number, for `end`.
  uint64_t begin_meeting(FlightGroup& group, const FlightOperation& operation) noexcept {
    return begin(&group, {&group, operation});
  }
  uint64_t begin_meeting(FlightGroup& group, const FlightDescription& description) noexcept {
    return begin(&group, description);
  }
  uint64_t begin_exchange(const FlightOperation& operation) noexcept { return begin(nullptr, {nullptr, operation}); }
  /// Records that an event has ended, and the bytes that this process sent and received in it. Does nothing where 1,024
  /// later events have begun.
  void end(uint64_t number, FlightOutcome outcome, uint64_t bytes = 0) noexcept;
  /// Records that this process has left its job normally.
  void leave() noexcept;

 private:
  FlightSlot& slot(uint64_t number) noexcept;
  uint64_t begin(FlightGroup* group, const FlightDescription& description) noexcept;

  int file_ = -1;
  FlightClock clock_;
  Mutex<"flight recorder"> mutex_;
  uint64_t events_ = 0;            // begun so far
  std::vector<FlightSlot> slots_;  // in the file's format
};

}  // namespace artifex_devices
