// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/transfer/device_get.h"

#include "artifex_devices/array/live_arrays.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/device/executor.h"
#include "artifex_devices/transfer/brief_copy.h"
#include "artifex_devices/transfer/recorded_transfer.h"
#include "artifex_devices/transfer/row_major_tiles.h"
#include "artifex_devices/transfer/tiling.h"

namespace artifex_devices {
namespace {

/// A read-only view whose owner is the block.
std::shared_ptr<HostView> show(const Array& array, const BufferRef& buffer, Dims byte_strides) {
  auto view = std::make_shared<HostView>();
  view->data = buffer.host_data();
  view->dtype = array.dtype();
  view->shape = array.shape();
  view->byte_strides = std::move(byte_strides);
  view->owner = std::make_shared<BlockRef>(buffer.block);
  return view;
}

/// A gathered value is row-major.
std::shared_ptr<HostView> show_gathered(const Array& array, const BufferRef& buffer) {
  return show(array, buffer, row_major_strides(array.shape(), itemsize(array.dtype())));
}

/// The buffer, if any, that the host can read and that starts with the full value, in row-major order or in the array's
/// layout.
BufferRef find_whole(const Array& array, const ShardDomains& domains) {
  if (!array.is_host_readable()) return {};
  const bool one_tile = domains.grid().tiles() == 1;  // perhaps several buffers, each on its arena
  if (one_tile || (!array.layout() && row_major_run(*array.storage(), domains)))
    return array.storage()->buffer(array.is_shard() ? array.buffer_at(Position(0)) : BufferId(0));
  return {};
}

/// For each tile a position of this process that holds it.
IdVector<TileId, Position> positions_of_tiles(const Sharding& sharding) {
  const TileGrid& grid = sharding.grid();
  IdVector<TileId, Position> positions(grid.tiles());
  for (const BufferId b : sharding.buffers().ids()) {
    const Position position = sharding.position_of(b);
    Position& found = positions[grid.tile(position)];
    if (found.is_none()) found = position;
  }
  return positions;
}

/// The copies that gather all tiles; `data` is the first element of the destination. Keeps its sources alive.
std::shared_ptr<CopyBatch> gathering(const Array& array, const ShardDomains& domains, void* data,
                                     const Dims& byte_strides) {
  const Sharding& sharding = *array.sharding();
  const int64_t size = itemsize(array.dtype());
  auto batch = std::make_shared<CopyBatch>();
  const auto tiles =
      array.is_shard() ? std::nullopt : Tiling::of(*array.storage(), domains, array.layout().get(), size);
  if (tiles && array.size() > 0) {
    batch->hold(array.storage()->buffer(BufferId(0)).block);
    const Tiling whole{static_cast<std::byte*>(data), byte_strides, {}, 0};
    batch->add(tiling_copy(whole, *tiles, array.shape(), size), sharding.devices()->front()->lane());
    return batch;
  }
  batch->reserve(sharding.grid().tiles());
  for (const Position position : positions_of_tiles(sharding)) {
    const IndexDomain box = domains.domain(position);
    if (box.volume() == 0) continue;
    int64_t offset = 0;
    for (int64_t d = 0; d < box.rank(); ++d) offset += box.origin[d] * byte_strides[d];
    BufferRef buffer = array.storage()->buffer(array.buffer_at(position));
    const StridedCopy copy(static_cast<std::byte*>(data) + offset, byte_strides, buffer.device_data(),
                           array.strides(box.shape), box.shape, size, array.nbytes());
    batch->hold(std::move(buffer.block));
    batch->add(copy, sharding.device(position).lane());
  }
  return batch;
}

void gather(const Array& array, const ShardDomains& domains, void* data, const Dims& byte_strides) {
  const int64_t begin_ns = recorded_begin_ns(Recorded::kTransfers);
  const auto batch = gathering(array, domains, data, byte_strides);
  array.sharding()->devices()->client()->executor().run(*batch);
  if (is_recorded(Recorded::kTransfers)) {
    record_get(*array.sharding(), array.shape(), array.dtype(), {begin_ns, batch->bytes()});
  }
}

/// Room for the value in our cache.
BufferRef host_buffer(const Array& array) {
  try {
    const DeviceList& devices = *array.sharding()->devices();
    return {devices[devices.addressable_position(0)]->arena().allocate(array.nbytes()), 0};
  } catch (const OutOfMemory& error) {
    fail_out_of_memory("device_get", "the host", array.nbytes(), error, *array.sharding()->devices()->client(),
                       "delete arrays that are no longer needed, or get shard by shard");
  }
}

/// The value that was gathered before, or is just being gathered; null without one.
std::shared_ptr<const HostView> gathered_before(const Array& array) {
  auto value = array.coming_host_value();
  if (!value || value->shape != array.shape()) return nullptr;
  // A copy that a fork interrupted is repeated.
  if (value->ready && ((!value->ready->is_set() && value->ready->lost_by_fork()) || value->ready->error())) {
    return nullptr;
  }
  return value;
}

}  // namespace

void check_host_read(const Array& array, const TransferGuards& guards, bool is_explicit, std::string_view operation,
                     std::string_view repair) {
  constexpr auto kDirection = TransferDirection::kDeviceToHost;
  if (array.is_host_readable() || guards.level(kDirection) == GuardLevel::kAllow) return;
  if (gathered_before(array)) return;
  check_transfer(guards, kDirection, is_explicit, [&] {
    return TransferDescription{std::string(operation),
                               to_string(array.shape()),
                               std::string(name(array.dtype())),
                               array.sharding()->to_string(),
                               "the host",
                               std::string(repair)};
  });
}

std::shared_ptr<const HostView> device_get(const ArrayRef& array) {
  if (is_brief_copy(array->nbytes(), *array->sharding())) {
    if (auto value = device_get_if_ready(array)) return value;
  }
  return run_blocking([&] {
    for (;;) {
      if (auto value = device_get_if_ready(array)) return value;
      wait_for(array->ready_event());
      if (const auto coming = gathered_before(*array)) wait_for(coming->ready);
    }
  });
}

std::shared_ptr<const HostView> device_get_if_ready(const ArrayRef& array) {
  array->check_alive("device_get");
  array->check_addressable("device_get");
  if (!is_ready(array->ready_event())) return nullptr;
  wait_for(array->ready_event());  // rethrows what went wrong
  if (auto cached = gathered_before(*array)) {
    if (!is_ready(cached->ready)) return nullptr;
    wait_for(cached->ready);
    return cached;
  }
  const ShardDomains domains = array->sharding()->domains(array->shape(), "device_get");
  BufferRef whole = find_whole(*array, domains);
  if (whole.block) return show(*array, whole, array->strides(array->shape()));

  std::shared_ptr<const HostView> view = show_gathered(*array, host_buffer(*array));
  gather(*array, domains, view->data, view->byte_strides);
  auto kept = array->cache_host_value(view);
  return kept->ready ? view : kept;  // another thread may still be writing it
}

std::shared_ptr<const HostView> device_get_async(const ArrayRef& array) {
  array->check_alive("copy_to_host_async");
  array->check_addressable("copy_to_host_async");
  if (auto cached = gathered_before(*array)) return cached;
  const ShardDomains domains = array->sharding()->domains(array->shape(), "copy_to_host_async");
  const EventRef& source_ready = array->ready_event();
  if (const BufferRef whole = find_whole(*array, domains); whole.block) {
    auto view = show(*array, whole, array->strides(array->shape()));
    view->ready = source_ready;
    return view;
  }
  const BufferRef memory = host_buffer(*array);
  auto view = show_gathered(*array, memory);
  auto batch = gathering(*array, domains, view->data, view->byte_strides);
  batch->hold(memory.block);
  const int64_t begin_ns = recorded_begin_ns(Recorded::kTransfers);
  const int64_t bytes = batch->bytes();
  view->ready = array->sharding()->devices()->client()->executor().submit(std::move(batch), source_ready);
  if (is_recorded(Recorded::kTransfers)) {
    record_get(*array->sharding(), array->shape(), array->dtype(), {begin_ns, bytes, view->ready});
  }
  array->cache_host_value(view);
  return view;
}

}  // namespace artifex_devices
