// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/transfer/transfer_recording.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "artifex_devices/base/error.h"
#include "artifex_devices/base/fork.h"
#include "artifex_devices/base/mutex.h"
#include "artifex_devices/transfer/traced_copies.h"

namespace artifex_devices {
namespace {

constinit Mutex<"transfer recordings"> g_recordings_mutex;

// Never destroyed: a recording may outlive static destruction.
std::vector<TransferRecording*>& g_open_recordings = *new std::vector<TransferRecording*>;
HeldOverFork g_recordings_held_over_fork(g_recordings_mutex);

void add_to(TransferCount* count, int64_t bytes) {
  ++count->calls;
  count->bytes += bytes;
}

int process_of(const Sharding& sharding) {
  const Client& client = *sharding.devices()->client();
  return client.is_multi_process() ? client.process_index() : 0;
}

/// One transfer of `bytes_of(buffer)` from the host to each buffer of this process.
template <class BytesOf>
void record_from_host(const Sharding& sharding, const TransferRun& run, BytesOf&& bytes_of) {
  RecordedTransfer transfer(TransferDirection::kHostToDevice);
  for (int64_t b = 0; b < sharding.buffers().size(); ++b) {
    const Device& device = *(*sharding.devices())[sharding.position_of(b)];
    transfer.add(RouteEnd::host(), RouteEnd::of(device, sharding.memory_kind()), bytes_of(b));
  }
  transfer.commit(process_of(sharding), run);
}

// A copy in the background whose event an open trace has.
struct TracedCopy {
  std::shared_ptr<TraceEvent> event;
  EventRef ready;
  int64_t bytes;
};

constinit Mutex<"traced copies"> g_copies_mutex;

// Never destroyed: copies may end while static objects are destroyed.
std::vector<TracedCopy>& g_traced_copies = *new std::vector<TracedCopy>;
HeldOverFork g_copies_held_over_fork(g_copies_mutex);

// Takes the copies that have finished out of the list.
std::vector<TracedCopy> take_finished_copies() {
  const std::lock_guard lock(g_copies_mutex);
  std::vector<TracedCopy>& all = g_traced_copies;
  const auto first =
      std::partition(all.begin(), all.end(), [](const TracedCopy& copy) { return !copy.ready->is_set(); });
  std::vector<TracedCopy> finished(std::make_move_iterator(first), std::make_move_iterator(all.end()));
  all.erase(first, all.end());
  return finished;
}

void note_traced_copy(TracedCopy copy) {
  end_traced_copies();
  const std::lock_guard lock(g_copies_mutex);
  g_traced_copies.push_back(std::move(copy));
}

}  // namespace

void end_traced_copies() noexcept {
  try {
    for (const TracedCopy& copy : take_finished_copies()) end_trace(copy.event, copy.ready->error() ? 0 : copy.bytes);
  } catch (const std::bad_alloc&) {  // their workers end them
  }
}

constinit std::atomic<int> TransferRecording::open_count{0};

RouteEnd RouteEnd::of(const Device& device, MemoryKind kind) {
  std::string name = device.to_string();
  if (kind != MemoryKind::kDevice) name.append(" ").append(to_string(kind));
  return {std::move(name), device.device_kind()};
}

TransferRecording::TransferRecording() {
  const std::lock_guard lock(g_recordings_mutex);
  g_open_recordings.push_back(this);
  open_count.fetch_add(1, std::memory_order_relaxed);
}

TransferRecording::~TransferRecording() { stop(); }

void TransferRecording::stop() noexcept {
  const std::lock_guard lock(g_recordings_mutex);
  if (!std::exchange(is_open_, false)) return;
  std::erase(g_open_recordings, this);
  open_count.fetch_sub(1, std::memory_order_relaxed);
}

std::map<Route, TransferCount> TransferRecording::routes() const {
  const std::lock_guard lock(g_recordings_mutex);
  return routes_;
}

std::map<TransferLine, TransferCount> TransferRecording::lines() const {
  const std::lock_guard lock(g_recordings_mutex);
  return lines_;
}

void RecordedTransfer::add(const RouteEnd& from, const RouteEnd& to, int64_t bytes) {
  if (bytes > 0) bytes_[{from, to}] += bytes;
}

void RecordedTransfer::trace(int process, const TransferRun& run, const CallerLine& line) const {
  if (bytes_.empty()) return;
  int64_t planned = 0;
  std::map<std::string, int64_t> of_device;  // that receives, or that the host reads
  std::map<std::string, std::string> routes;
  const bool is_get = direction_ == TransferDirection::kDeviceToHost;
  for (const auto& [ends, bytes] : bytes_) {
    const std::string& device = (is_get ? ends.first : ends.second).name;
    of_device[device] += bytes;
    std::string& route = routes[device];
    route.append(route.empty() ? "" : ", ").append(ends.first.name).append(" -> ").append(ends.second.name);
    planned += bytes;
  }
  // The copies of a transfer end together; what they write is counted for all of them.
  const bool is_complete = run.bytes == planned;
  for (const auto& [device, bytes] : of_device) {
    TraceEvent event{.kind = TraceKind::kTransfer,
                     .process = process,
                     .device = device,
                     .name = std::string(to_string(direction_)),
                     .detail = routes[device],
                     .begin_ns = run.begin_ns,
                     .planned_bytes = bytes,
                     .file = line.file,
                     .line = line.line};
    const int64_t moved = is_complete ? bytes : run.bytes * bytes / planned;
    if (!run.ready) {
      event.end_ns = trace_clock_ns();
      event.moved_bytes = moved;
      add_trace(std::move(event));
      continue;
    }
    const std::shared_ptr<TraceEvent> added = add_trace(std::move(event));
    if (!added) continue;
    note_traced_copy({added, run.ready, moved});
    run.ready->then([added, moved](const std::exception_ptr& error) { end_trace(added, error ? 0 : moved); });
  }
}

void RecordedTransfer::commit(int process, const TransferRun& run) {
  if (bytes_.empty()) return;
  const TransferLine line{direction_, caller_line().value_or(CallerLine{})};
  if (run.begin_ns != 0 && TraceRecording::is_any_open()) trace(process, run, line.line);
  int64_t total = 0;
  for (const auto& [ends, bytes] : bytes_) total += bytes;
  const std::lock_guard lock(g_recordings_mutex);
  for (TransferRecording* recording : g_open_recordings) {
    add_to(&recording->lines_[line], total);
    for (const auto& [ends, bytes] : bytes_) {
      add_to(&recording->routes_[Route{direction_, ends.first, ends.second}], bytes);
    }
  }
}

void record_put(const Sharding& sharding, const Dims& shape, DType dtype, const TransferRun& run) {
  const Shards shards = sharding.shards(shape, "device_put");
  record_from_host(sharding, run, [&](int64_t buffer) { return shards[buffer].box.volume() * itemsize(dtype); });
}

void record_host_operand(const Sharding& sharding, const Dims& shape, DType dtype) {
  if (sharding.devices()->client()->is_host_readable(sharding.memory_kind())) return;
  try {
    record_put(sharding, shape, dtype);
  } catch (const InvalidArgument&) {
    const int64_t bytes = checked_product(shape, "device_put") * itemsize(dtype);
    record_from_host(sharding, {}, [&](int64_t) { return bytes; });
  }
}

void record_get(const Sharding& sharding, const Dims& shape, DType dtype, const TransferRun& run) {
  RecordedTransfer transfer(TransferDirection::kDeviceToHost);
  std::vector<bool> is_read(static_cast<size_t>(sharding.grid().tiles()), false);
  for (const Shard& shard : sharding.shards(shape, "device_get")) {
    if (is_read[static_cast<size_t>(shard.tile)]) continue;
    is_read[static_cast<size_t>(shard.tile)] = true;
    transfer.add(RouteEnd::of(*(*sharding.devices())[shard.position], sharding.memory_kind()), RouteEnd::host(),
                 shard.box.volume() * itemsize(dtype));
  }
  transfer.commit(process_of(sharding), run);
}

namespace {

RecordedTransfer transfer_of(const ReshardPlan& plan, const Sharding& source, const Sharding& destination) {
  const Client& client = *destination.devices()->client();
  const int process = process_of(destination);
  const auto ends_of = [&](const std::vector<BufferPlace>& places, const Sharding& sharding) {
    std::vector<RouteEnd> ends;
    ends.reserve(places.size());
    for (const BufferPlace& place : places) {
      ends.push_back(RouteEnd::of(*client.device(place.device), sharding.memory_kind()));
    }
    return ends;
  };
  const std::vector<RouteEnd> from = ends_of(plan.source_places(), source);
  const std::vector<RouteEnd> to = ends_of(plan.destination_places(), destination);
  RecordedTransfer transfer(TransferDirection::kDeviceToDevice);
  for (size_t i = 0; i < to.size(); ++i) {
    if (plan.destination_places()[i].process != process) continue;
    plan.for_copies_into(static_cast<int64_t>(i), [&](const ReshardCopy& copy) {
      transfer.add(from[static_cast<size_t>(copy.source)], to[i], copy.bytes);
    });
  }
  return transfer;
}

}  // namespace

void record_reshard(const ReshardPlan& plan, const Sharding& source, const Sharding& destination,
                    const TransferRun& run) {
  transfer_of(plan, source, destination).commit(process_of(destination), run);
}

void trace_reshard(const ReshardPlan& plan, const Sharding& source, const Sharding& destination,
                   const TransferRun& run) {
  transfer_of(plan, source, destination).trace(process_of(destination), run, caller_line().value_or(CallerLine{}));
}

}  // namespace artifex_devices
