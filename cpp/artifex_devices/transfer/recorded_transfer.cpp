// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/transfer/recorded_transfer.h"

#include <atomic>
#include <vector>

#include "artifex_devices/base/error.h"

namespace artifex_devices {
namespace {

constinit std::atomic<uint64_t> g_transfers{0};

ProcessIndex process_of(const Sharding& sharding) { return sharding.devices()->client()->process_index(); }

/// One transfer of `bytes_of(buffer)` from the host to each buffer of this process.
template <class BytesOf>
void record_from_host(const Sharding& sharding, const TransferRun& run, int64_t shareable_bytes, BytesOf&& bytes_of) {
  RecordedTransfer transfer{TransferDirection::kHostToDevice, process_of(sharding), run};
  transfer.shareable_bytes = shareable_bytes;
  for (const BufferId b : sharding.buffers().ids()) {
    transfer.add(RouteEnd::host(), RouteEnd::of(sharding.device(b), sharding.memory_kind()), bytes_of(b));
  }
  transfer.commit();
}

}  // namespace

RouteEnd RouteEnd::of(const Device& device, MemoryKind kind) {
  std::string name = device.to_string();
  if (kind != MemoryKind::kDevice) name.append(" ").append(to_string(kind));
  return {std::move(name), device.device_kind()};
}

void RecordedTransfer::add(const RouteEnd& from, const RouteEnd& to, int64_t count) {
  if (count > 0) bytes[{from, to}] += count;
}

void RecordedTransfer::commit() {
  if (bytes.empty()) return;
  line = caller_line().value_or(CallerLine{});
  number = g_transfers.fetch_add(1, std::memory_order_relaxed) + 1;
  record(*this);
  if (!run.ready || !is_recorded(Recorded::kTransferEnds)) return;
  run.ready->then([number = number](const std::exception_ptr& error) {
    record(TransferEnd{number, clock_ns(), error != nullptr});
  });
}

void record_put(const Sharding& sharding, const Dims& shape, DType dtype, const TransferRun& run,
                int64_t shareable_bytes) {
  const Shards shards = sharding.shards(shape, "device_put");
  record_from_host(sharding, run, shareable_bytes,
                   [&](BufferId buffer) { return shards[buffer].box.volume() * itemsize(dtype); });
}

void record_host_operand(const Sharding& sharding, const Dims& shape, DType dtype) {
  if (sharding.devices()->client()->is_host_readable(sharding.memory_kind())) return;
  try {
    record_put(sharding, shape, dtype);
  } catch (const InvalidArgument&) {
    const int64_t bytes = checked_product(shape, "device_put") * itemsize(dtype);
    record_from_host(sharding, {}, 0, [&](BufferId) { return bytes; });
  }
}

void record_get(const Sharding& sharding, const Dims& shape, DType dtype, const TransferRun& run) {
  RecordedTransfer transfer{TransferDirection::kDeviceToHost, process_of(sharding), run};
  IdVector<TileId, bool> is_read(sharding.grid().tiles());
  for (const Shard& shard : sharding.shards(shape, "device_get")) {
    if (is_read[shard.tile]) continue;
    is_read[shard.tile] = true;
    transfer.add(RouteEnd::of(sharding.device(shard.position), sharding.memory_kind()), RouteEnd::host(),
                 shard.box.volume() * itemsize(dtype));
  }
  transfer.commit();
}

void record_reshard(const ReshardPlan& plan, const Sharding& source, const Sharding& destination,
                    const TransferRun& run) {
  const Client& client = *destination.devices()->client();
  const auto ends_of = [&](const BufferPlaces& places, const Sharding& sharding) {
    IdVector<PlaceId, RouteEnd> ends;
    ends.reserve(places.size());
    for (const BufferPlace& place : places) {
      ends.push_back(RouteEnd::of(*client.device(place.device), sharding.memory_kind()));
    }
    return ends;
  };
  const IdVector<PlaceId, RouteEnd> from = ends_of(plan.source_places(), source);
  const IdVector<PlaceId, RouteEnd> to = ends_of(plan.destination_places(), destination);
  RecordedTransfer transfer{TransferDirection::kDeviceToDevice, process_of(destination), run};
  for (const PlaceId i : to.ids()) {
    if (plan.destination_places()[i].process != transfer.process) continue;
    plan.for_copies_into(i, [&](const ReshardCopy& copy) { transfer.add(from[copy.source], to[i], copy.bytes); });
  }
  transfer.commit();
}

}  // namespace artifex_devices
