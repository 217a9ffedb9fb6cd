// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/transfer/trace_recording.h"

#include <algorithm>
#include <map>
#include <new>
#include <utility>

namespace artifex_devices {

TraceRecording::TraceRecording(ProcessIndex process, ClientRef client) : process_(process), client_(std::move(client)) {
  const auto held = lock();
  attach_locked(Recorded::kSpans | Recorded::kTransfers | Recorded::kTransferEnds | Recorded::kMemory);
  for (const DeviceId id : client_->device_ids()) {
    const Device& device = *client_->device(id);
    if (device.is_addressable()) add_memory(device, device.bytes_in_use());
  }
}

TraceRecording::~TraceRecording() { stop(); }

void TraceRecording::stop() noexcept {
  std::vector<Running> last;  // outlives the lock, as the last reference to an event may release what takes it
  const auto held = lock();
  if (!is_attached_locked()) return;
  detach_locked();
  last.swap(running_);
  // A thread that waits for a copy may go on before the worker has recorded its end.
  for (const Running& copy : last) {
    if (copy.ready->is_set()) finish(copy, clock_ns(), copy.ready->error() != nullptr);
  }
}

std::vector<TraceEvent> TraceRecording::events() const {
  std::vector<TraceEvent> result;
  {
    const auto held = lock();
    result = events_;
  }
  std::ranges::stable_sort(result, {}, &TraceEvent::begin_ns);
  return result;
}

std::vector<TraceMemory> TraceRecording::memory() const {
  const auto held = lock();
  return memory_;
}

int64_t TraceRecording::dropped() const {
  const auto held = lock();
  return dropped_;
}

bool TraceRecording::add(TraceEvent event) {
  if (events_.size() >= kMostEvents) {
    ++dropped_;
    return false;
  }
  if (event.process.is_none()) event.process = process_;
  events_.push_back(std::move(event));
  return true;
}

void TraceRecording::take_span(const TraceEvent& event) noexcept {
  try {
    add(event);
  } catch (const std::bad_alloc&) {
    ++dropped_;
  }
}

void TraceRecording::take_transfer(const RecordedTransfer& transfer) noexcept {
  const TransferRun& run = transfer.run;
  if (run.begin_ns == 0) return;
  struct Received {
    int64_t bytes = 0;
    std::string routes;
  };
  try {
    int64_t planned = 0;
    std::map<std::string, Received> devices;  // by the device that receives, or that the host reads
    const bool is_get = transfer.direction == TransferDirection::kDeviceToHost;
    for (const auto& [ends, bytes] : transfer.bytes) {
      auto& [received, routes] = devices[(is_get ? ends.first : ends.second).name];
      received += bytes;
      routes.append(routes.empty() ? "" : ", ").append(ends.first.name).append(" -> ").append(ends.second.name);
      planned += bytes;
    }
    for (const auto& [device, received] : devices) {
      // The copies of a transfer end together, so their bytes are counted together.
      const int64_t moved = run.bytes == planned ? received.bytes : run.bytes * received.bytes / planned;
      const bool is_added = add({.kind = TraceKind::kTransfer,
                                 .process = transfer.process,
                                 .device = device,
                                 .thread = trace_thread(),
                                 .name = std::string(to_string(transfer.direction)),
                                 .detail = received.routes,
                                 .begin_ns = run.begin_ns,
                                 .end_ns = run.ready ? 0 : clock_ns(),
                                 .planned_bytes = received.bytes,
                                 .moved_bytes = run.ready ? 0 : moved,
                                 .file = transfer.line.file,
                                 .line = transfer.line.line});
      if (is_added && run.ready) running_.push_back({transfer.number, run.ready, events_.size() - 1, moved});
    }
  } catch (const std::bad_alloc&) {
    ++dropped_;
  }
}

void TraceRecording::take_transfer_end(const TransferEnd& end) noexcept {
  std::erase_if(running_, [&](const Running& copy) {
    if (copy.transfer != end.number) return false;
    finish(copy, end.end_ns, end.has_failed);
    return true;
  });
}

void TraceRecording::finish(const Running& copy, int64_t end_ns, bool has_failed) noexcept {
  events_[copy.event].end_ns = end_ns;
  events_[copy.event].moved_bytes = has_failed ? 0 : copy.bytes;
}

void TraceRecording::take_memory(const MemoryChange& change) noexcept {
  if (&change.device.client() == client_.get()) add_memory(change.device, change.in_use);
}

void TraceRecording::add_memory(const Device& device, int64_t bytes) noexcept {
  try {
    if (memory_.size() < kMostEvents) {
      memory_.push_back({device.process_index(), device.to_string(), clock_ns(), bytes});
      return;
    }
  } catch (const std::bad_alloc&) {  // counted below
  }
  ++dropped_;
}

}  // namespace artifex_devices
