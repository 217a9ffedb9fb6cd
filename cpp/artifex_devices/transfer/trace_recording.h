// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "artifex_devices/base/recorder.h"
#include "artifex_devices/device/client.h"
#include "artifex_devices/transfer/recorded_transfer.h"

namespace artifex_devices {

/// Bytes of arrays on a device from a moment on.
struct TraceMemory {
  ProcessIndex process = {};
  std::string device;
  int64_t time_ns = 0;
  int64_t bytes = 0;
};

/// Records what this process does over time, from its construction to stop(): the events of all threads and worlds, and
/// the memory of the devices of one client. Any number may be open at once.
class TraceRecording final : RecorderSink {
 public:
  static constexpr size_t kMostEvents = 1'000'000;  // also the limit of memory values; beyond it they are only counted

  /// `process`: number of the process for events of threads without a process number.
  TraceRecording(ProcessIndex process, ClientRef client);
  ~TraceRecording();

  /// Ends the recording; the events stay. Further calls do nothing.
  void stop() noexcept;
  /// The events by their begin.
  std::vector<TraceEvent> events() const;
  std::vector<TraceMemory> memory() const;
  /// Number of events and values of memory that were not recorded.
  int64_t dropped() const;

 private:
  // A copy in the background that has not ended.
  struct Running {
    uint64_t transfer;
    EventRef ready;
    size_t event;   // place in events_
    int64_t bytes;  // that have moved in the end
  };

  void take_span(const TraceEvent& event) noexcept override;
  void take_transfer(const RecordedTransfer& transfer) noexcept override;
  void take_transfer_end(const TransferEnd& end) noexcept override;
  void take_memory(const MemoryChange& change) noexcept override;
  void add_memory(const Device& device, int64_t bytes) noexcept;
  bool add(TraceEvent event);
  void finish(const Running& copy, int64_t end_ns, bool has_failed) noexcept;

  ProcessIndex process_;
  ClientRef client_;
  std::vector<TraceEvent> events_;
  std::vector<TraceMemory> memory_;
  std::vector<Running> running_;
  int64_t dropped_ = 0;
};

}  // namespace artifex_devices
