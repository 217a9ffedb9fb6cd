// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "artifex_devices/array/array.h"
#include "artifex_devices/base/caller_line.h"
#include "artifex_devices/base/event.h"
#include "artifex_devices/base/recorder.h"
#include "artifex_devices/partition/reshard_plan.h"
#include "artifex_devices/transfer/transfer_guard.h"

namespace artifex_devices {

/// One end of a route: "host", or a device such as "gpu:3", with the kind of its memory unless that is `device`:
/// "gpu:3 pinned_host".
struct RouteEnd {
  std::string name;
  std::string device_kind;  // "NVIDIA H100 80GB HBM3"; "" for the host

  static RouteEnd host() { return {"host", ""}; }
  static RouteEnd of(const Device& device, MemoryKind kind);
  friend auto operator<=>(const RouteEnd&, const RouteEnd&) = default;
};

/// When the copies of a transfer ran.
struct TransferRun {
  int64_t begin_ns = 0;  // recorded_begin_ns() before the first copy; 0: not timed
  int64_t bytes = 0;     // that the copies write
  EventRef ready = {};   // set at their end; null: they have ended
};

/// One transfer, for the recorder: what is copied between the host and devices, and between devices. It is recorded
/// when it is started, with the bytes of its plan, while `is_recorded(Recorded::kTransfers)`.
struct RecordedTransfer {
  TransferDirection direction = TransferDirection::kHostToDevice;
  ProcessIndex process = {};
  TransferRun run = {};
  std::map<std::pair<RouteEnd, RouteEnd>, int64_t> bytes = {};  // by source and destination
  int64_t shareable_bytes = 0;  // of the bytes, which device_put with may_alias would have shared
  CallerLine line = {};
  uint64_t number = 0;  // of its TransferEnd

  void add(const RouteEnd& from, const RouteEnd& to, int64_t count);
  /// Records it with the line of the calling thread, and its end, if it has bytes. The caller must hold no lock.
  void commit();
};

/// The copies of a transfer in the background have ended.
struct TransferEnd {
  uint64_t number = 0;
  int64_t end_ns = 0;
  bool has_failed = false;
};

/// Records that host memory was copied to every buffer of this process. `shareable_bytes`: as in RecordedTransfer.
[[gnu::cold]] void record_put(const Sharding& sharding, const Dims& shape, DType dtype, const TransferRun& run = {},
                              int64_t shareable_bytes = 0);
/// Records that devices whose memory the host does not share received a host operand of a computation: each its part
/// under `sharding`, or all of it if the sharding does not fit the shape.
[[gnu::cold]] void record_host_operand(const Sharding& sharding, const Dims& shape, DType dtype);
/// Records that a value was copied to the host, each tile from the first device of this process that holds it.
[[gnu::cold]] void record_get(const Sharding& sharding, const Dims& shape, DType dtype, const TransferRun& run = {});
/// Records the copies of a plan into buffers of this process.
[[gnu::cold]] void record_reshard(const ReshardPlan& plan, const Sharding& source, const Sharding& destination,
                                  const TransferRun& run);

}  // namespace artifex_devices
