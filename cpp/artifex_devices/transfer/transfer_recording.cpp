// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/transfer/transfer_recording.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "artifex_devices/base/error.h"
#include "artifex_devices/base/fork.h"
#include "artifex_devices/base/mutex.h"

namespace artifex_devices {
namespace {

constinit Mutex<"transfer recordings"> g_recordings_mutex;

// Never destroyed: a recording may outlive static destruction.
std::vector<TransferRecording*>& open_recordings() {
  static auto* const recordings = new std::vector<TransferRecording*>();
  return *recordings;
}

// So that a forked child finds the list whole and unlocked. The list is created here, as a guarded static that another
// thread is creating would block the child.
[[maybe_unused]] const bool g_recordings_held_over_fork = [] {
  open_recordings();
  register_fork_handlers({.prepare = [] { g_recordings_mutex.lock(); },
                          .parent = [] { g_recordings_mutex.unlock(); },
                          .child = [] { g_recordings_mutex.unlock(); }});
  return true;
}();

void add_to(TransferCount* count, int64_t bytes) {
  ++count->calls;
  count->bytes += bytes;
}

/// One transfer of `bytes_of(tile)` from the host to each buffer of this process.
template <class BytesOf>
void record_from_host(const Sharding& sharding, BytesOf&& bytes_of) {
  RecordedTransfer transfer(TransferDirection::kHostToDevice);
  for (int64_t b = 0; b < sharding.buffers().size(); ++b) {
    const int64_t position = sharding.buffers().position(sharding.grid(), b);
    transfer.add(RouteEnd::host(), RouteEnd::of(*(*sharding.devices())[position], sharding.memory_kind()),
                 bytes_of(sharding.grid().tile(position)));
  }
  transfer.commit();
}

}  // namespace

constinit std::atomic<int> TransferRecording::open_count{0};

RouteEnd RouteEnd::of(const Device& device, MemoryKind kind) {
  std::string name = device.to_string();
  if (kind != MemoryKind::kDevice) name.append(" ").append(to_string(kind));
  return {std::move(name), device.device_kind()};
}

TransferRecording::TransferRecording() {
  const std::lock_guard lock(g_recordings_mutex);
  open_recordings().push_back(this);
  open_count.fetch_add(1, std::memory_order_relaxed);
}

TransferRecording::~TransferRecording() { stop(); }

void TransferRecording::stop() noexcept {
  const std::lock_guard lock(g_recordings_mutex);
  if (!std::exchange(is_open_, false)) return;
  std::erase(open_recordings(), this);
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

void RecordedTransfer::commit() {
  if (bytes_.empty()) return;
  const TransferLine line{direction_, caller_line().value_or(CallerLine{})};
  int64_t total = 0;
  for (const auto& [ends, bytes] : bytes_) total += bytes;
  const std::lock_guard lock(g_recordings_mutex);
  for (TransferRecording* recording : open_recordings()) {
    add_to(&recording->lines_[line], total);
    for (const auto& [ends, bytes] : bytes_) {
      add_to(&recording->routes_[Route{direction_, ends.first, ends.second}], bytes);
    }
  }
}

void record_put(const Sharding& sharding, const Dims& shape, DType dtype) {
  const ShardDomains domains = sharding.domains(shape, "device_put");
  record_from_host(sharding, [&](int64_t tile) { return domains.domain(tile).volume() * itemsize(dtype); });
}

void record_host_operand(const Sharding& sharding, const Dims& shape, DType dtype) {
  if (sharding.devices()->client()->is_host_readable(sharding.memory_kind())) return;
  try {
    record_put(sharding, shape, dtype);
  } catch (const InvalidArgument&) {
    const int64_t bytes = checked_product(shape, "device_put") * itemsize(dtype);
    record_from_host(sharding, [&](int64_t) { return bytes; });
  }
}

void record_get(const Sharding& sharding, const Dims& shape, DType dtype) {
  RecordedTransfer transfer(TransferDirection::kDeviceToHost);
  const ShardDomains domains = sharding.domains(shape, "device_get");
  std::vector<bool> is_read(static_cast<size_t>(sharding.grid().tiles()), false);
  for (int64_t b = 0; b < sharding.buffers().size(); ++b) {
    const int64_t position = sharding.buffers().position(sharding.grid(), b);
    const int64_t tile = sharding.grid().tile(position);
    if (is_read[static_cast<size_t>(tile)]) continue;
    is_read[static_cast<size_t>(tile)] = true;
    transfer.add(RouteEnd::of(*(*sharding.devices())[position], sharding.memory_kind()), RouteEnd::host(),
                 domains.domain(tile).volume() * itemsize(dtype));
  }
  transfer.commit();
}

void record_reshard(const ReshardPlan& plan, const Sharding& source, const Sharding& destination) {
  const Client& client = *destination.devices()->client();
  const int process = client.is_multi_process() ? client.process_index() : 0;
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
  transfer.commit();
}

}  // namespace artifex_devices
