// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "artifex_devices/flight/flight_clock.h"

namespace artifex_devices {

struct FlightHeader;
struct FlightSlot;

/// In a meeting, processes agree that they do the same; an exchange moves bytes after it.
enum class FlightKind : uint8_t { kMeeting, kExchange };
/// How the bytes of an exchange move.
enum class FlightRoute : uint8_t { kNone, kMessages, kSharedMemory };
enum class FlightOutcome : uint8_t { kLasts, kDone, kFailed };
/// Which threads write a record: any, or one at a time, such as those that hold the GIL, which takes less time.
enum class FlightWriters : uint8_t { kAny, kOneAtATime };

/// Processes that meet, and how often they have met. The caller keeps one for each set of processes.
struct FlightGroup {
  explicit FlightGroup(const std::vector<int>& processes);  // ascending

  std::string processes;  // "0-3,6"
  uint32_t hash = 0;
  uint32_t meetings = 0;
};

/// What an operation between processes is, when it begins.
struct FlightOperation {
  std::string_view text = {};  // "psum of float32[128] over 'x'"; cut where it is longer than its place
  uint64_t digest = 0;         // equal where processes do the same
  FlightRoute route = FlightRoute::kNone;
  std::string_view file = {};  // of the program; of a longer path "..." and its end are kept
  int line = 0;
};

/// Texts of an event as they are in a file, with zeros after their ends.
struct FlightTexts {
  char processes[24];
  char file[64];
  char operation[112];
};

/// An operation as it is written: for operations that run again and again, as it is copied in a tenth of the time.
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

/// Writes the last 1,024 operations of this process to a file in mapped memory, which survives however the process
/// ends. An event costs two readings of a FlightClock and copies of at most 256 bytes. Nothing waits, nothing is
/// allocated.
///
/// Threads may call it as `writers` says; those of one group one at a time. A forked child must not.
class FlightRecorder {
 public:
  /// Creates the file, which must not exist, with all of its storage. FileError where the system refuses.
  FlightRecorder(const std::string& path, int process, int process_count, std::string_view host,
                 FlightWriters writers = FlightWriters::kAny);
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
  /// Records that an event has ended, and the bytes that this process sent and received in it.
  void end(uint64_t number, FlightOutcome outcome, uint64_t bytes = 0) noexcept;
  /// Records that this process has left its job as it should.
  void leave() noexcept;

 private:
  FlightHeader& header() const noexcept;
  FlightSlot& slot(uint64_t number) const noexcept;
  uint64_t begin(FlightGroup* group, const FlightDescription& description) noexcept;

  std::byte* memory_ = nullptr;
  FlightWriters writers_;
  FlightClock clock_;
};

}  // namespace artifex_devices
