// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/transfer/transfer_recording.h"

namespace artifex_devices {
namespace {

void add_to(TransferCount* count, int64_t bytes) {
  ++count->calls;
  count->bytes += bytes;
}

}  // namespace

TransferRecording::TransferRecording() {
  const auto held = lock();
  attach_locked(Recorded::kTransfers);
}

TransferRecording::~TransferRecording() { stop(); }

void TransferRecording::stop() noexcept {
  const auto held = lock();
  detach_locked();
}

std::map<Route, TransferCount> TransferRecording::routes() const {
  const auto held = lock();
  return routes_;
}

std::map<TransferLine, TransferCount> TransferRecording::lines() const {
  const auto held = lock();
  return lines_;
}

void TransferRecording::take_transfer(const RecordedTransfer& transfer) {
  int64_t total = 0;
  for (const auto& [ends, bytes] : transfer.bytes) {
    add_to(&routes_[Route{transfer.direction, ends.first, ends.second}], bytes);
    total += bytes;
  }
  TransferCount& line = lines_[TransferLine{transfer.direction, transfer.line}];
  add_to(&line, total);
  line.shareable_bytes += transfer.shareable_bytes;
}

}  // namespace artifex_devices
