// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <map>

#include "artifex_devices/base/caller_line.h"
#include "artifex_devices/base/recorder.h"
#include "artifex_devices/transfer/recorded_transfer.h"

namespace artifex_devices {

/// Transfers, and the bytes that they copy.
struct TransferCount {
  int64_t calls = 0;
  int64_t bytes = 0;
  int64_t shareable_bytes = 0;  // of a line: as in RecordedTransfer

  friend bool operator==(const TransferCount&, const TransferCount&) = default;
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
/// and between devices. Any number may be open at once, on any threads; each records all transfers of all worlds.
///
/// A transfer counts when it is started, with the bytes of its plan. Reading memory that the host can read is not a
/// transfer, and neither are the exchanges inside collectives. A process records what its own devices receive.
/// Example: device_put of 64 bytes to 2 devices that each get 32 bytes: one call of 64 bytes from one line, and one
/// call of 32 bytes on each of the routes host -> cpu:0 and host -> cpu:1.
class TransferRecording final : RecorderSink {
 public:
  TransferRecording();
  ~TransferRecording();

  /// Ends the recording; the counts stay. Further calls do nothing.
  void stop() noexcept;
  std::map<Route, TransferCount> routes() const;
  std::map<TransferLine, TransferCount> lines() const;

 private:
  void take_transfer(const RecordedTransfer& transfer) override;

  std::map<Route, TransferCount> routes_;
  std::map<TransferLine, TransferCount> lines_;
};

}  // namespace artifex_devices
