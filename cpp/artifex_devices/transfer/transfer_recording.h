// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "artifex_devices/array/array.h"
#include "artifex_devices/base/caller_line.h"
#include "artifex_devices/base/event.h"
#include "artifex_devices/base/trace_recording.h"
#include "artifex_devices/partition/reshard_plan.h"
#include "artifex_devices/transfer/transfer_guard.h"

namespace artifex_devices {

/// Transfers, and the bytes that they copy.
struct TransferCount {
  int64_t calls = 0;
  int64_t bytes = 0;

  friend bool operator==(const TransferCount&, const TransferCount&) = default;
};

/// One end of a route: "host", or a device such as "gpu:3", with the kind of its memory unless that is `device`:
/// "gpu:3 pinned_host".
struct RouteEnd {
  std::string name;
  std::string device_kind;  // "NVIDIA H100 80GB HBM3"; "" for the host

  static RouteEnd host() { return {"host", ""}; }
  static RouteEnd of(const Device& device, MemoryKind kind);
  friend auto operator<=>(const RouteEnd&, const RouteEnd&) = default;
};

struct Route {
  TransferDirection direction = TransferDirection::kHostToDevice;
  RouteEnd from;
  RouteEnd to;

  friend auto operator<=>(const Route&, const Route&) = default;
};

/// A line of the user's program that started transfers of one direction. A program without a source of lines, such as
/// one in C++, has the empty file.
struct TransferLine {
  TransferDirection direction = TransferDirection::kHostToDevice;
  CallerLine line;

  friend auto operator<=>(const TransferLine&, const TransferLine&) = default;
};

/// Records the transfers of this process from its construction to stop(): what is copied between the host and devices,
/// and between devices. Any number may be open at once, on any threads; each records all transfers of all worlds. While
/// none is open, a transfer costs one test of an atomic number more.
///
/// A transfer counts when it is started, with the bytes of its plan. Reading memory that the host can read is not a
/// transfer, and neither are the exchanges inside collectives. A process records what its own devices receive.
/// Example: device_put of 64 bytes to 2 devices that each get half of them: one call of 64 bytes from one line, and one
/// call of 32 bytes on each of the routes host -> cpu:0 and host -> cpu:1.
class TransferRecording {
 public:
  TransferRecording();
  ~TransferRecording();
  TransferRecording(const TransferRecording&) = delete;
  TransferRecording& operator=(const TransferRecording&) = delete;

  /// Ends the recording; the counts stay. Further calls do nothing.
  void stop() noexcept;
  std::map<Route, TransferCount> routes() const;
  std::map<TransferLine, TransferCount> lines() const;

  /// Whether a recording is open.
  static bool is_any_open() noexcept { return open_count.load(std::memory_order_relaxed) > 0; }

 private:
  friend class RecordedTransfer;
  static constinit std::atomic<int> open_count;

  std::map<Route, TransferCount> routes_;
  std::map<TransferLine, TransferCount> lines_;
  bool is_open_ = true;
};

/// When the copies of a transfer ran, for open traces.
struct TransferRun {
  int64_t begin_ns = 0;  // trace_begin_ns() before the first copy; 0: no trace was open
  int64_t bytes = 0;     // that the copies write
  EventRef ready = {};   // set at their end; null: they have ended
};

/// One transfer for the open recordings. Create one only while TransferRecording::is_any_open(). The line is that of
/// the calling thread.
class RecordedTransfer {
 public:
  explicit RecordedTransfer(TransferDirection direction) : direction_(direction) {}
  void add(const RouteEnd& from, const RouteEnd& to, int64_t bytes);
  /// Adds the transfer, if it has bytes, to all open recordings, and to open traces an event for each device. The
  /// caller must hold no lock.
  void commit(int process, const TransferRun& run = {});
  /// Adds it to open traces only.
  void trace(int process, const TransferRun& run, const CallerLine& line) const;

 private:
  TransferDirection direction_;
  std::map<std::pair<RouteEnd, RouteEnd>, int64_t> bytes_;
};

/// Records that host memory was copied to every buffer of this process.
[[gnu::cold]] void record_put(const Sharding& sharding, const Dims& shape, DType dtype, const TransferRun& run = {});
/// Records that devices whose memory the host does not share received a host operand of a computation: each its part
/// under `sharding`, or all of it if the sharding does not fit the shape.
[[gnu::cold]] void record_host_operand(const Sharding& sharding, const Dims& shape, DType dtype);
/// Records that a value was copied to the host, each tile from the first device of this process that holds it.
[[gnu::cold]] void record_get(const Sharding& sharding, const Dims& shape, DType dtype, const TransferRun& run = {});
/// Records the copies of a plan into buffers of this process.
[[gnu::cold]] void record_reshard(const ReshardPlan& plan, const Sharding& source, const Sharding& destination,
                                  const TransferRun& run);
/// Adds them to open traces only.
[[gnu::cold]] void trace_reshard(const ReshardPlan& plan, const Sharding& source, const Sharding& destination,
                                 const TransferRun& run);

}  // namespace artifex_devices
