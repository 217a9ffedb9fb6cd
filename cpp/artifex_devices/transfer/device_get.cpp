// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/transfer/device_get.h"

#include "artifex_devices/array/live_arrays.h"
#include "artifex_devices/base/error.h"
#include "artifex_devices/transfer/copy_batch.h"
#include "artifex_devices/transfer/counters.h"
#include "artifex_devices/transfer/row_major_tiles.h"
#include "artifex_devices/transfer/tiling.h"

namespace artifex_devices {
namespace {

/// A read-only view whose owner is the block.
std::shared_ptr<const HostView> show(const Array& array, const BufferRef& buffer) {
  auto view = std::make_shared<HostView>();
  view->data = buffer.data();
  view->dtype = array.dtype();
  view->shape = array.shape();
  view->byte_strides = row_major_strides(array.shape(), itemsize(array.dtype()));
  view->owner = std::make_shared<BlockRef>(buffer.block);
  return view;
}

/// The buffer that begins with the whole value in row-major order, if there is one.
BufferRef find_whole(const Array& array, const ShardDomains& domains) {
  const bool one_tile = domains.grid().tiles() == 1;  // maybe several buffers, on as many arenas
  if (one_tile || row_major_run(*array.storage(), domains)) return array.storage()->buffer(array.buffer_number(0));
  return {};
}

void run(CopyBatch& batch) {
  batch.run();
  counters.device_to_host_bytes.fetch_add(batch.bytes(), std::memory_order_relaxed);
}

/// Gathers all tiles; `data` is the first element of the destination.
void gather(const Array& array, const ShardDomains& domains, void* data, const Dims& byte_strides) {
  const Sharding& sharding = *array.sharding();
  const TileGrid& grid = sharding.grid();
  const int64_t size = itemsize(array.dtype());
  CopyBatch batch;
  const auto tiles = array.position_in_storage() < 0 ? Tiling::of(*array.storage(), domains, size) : std::nullopt;
  if (tiles && array.size() > 0) {
    batch.hold(array.storage()->buffer(0));
    const Tiling whole{static_cast<std::byte*>(data), byte_strides, {}, 0};
    batch.add(tiling_copy(whole, *tiles, array.shape(), size), (*sharding.devices())[0]->lane());
    run(batch);
    return;
  }
  batch.reserve(grid.tiles());
  for (int64_t tile = 0; tile < grid.tiles(); ++tile) {
    const int64_t position = grid.position(tile, 0);
    const IndexDomain box = domains.domain(tile);
    if (box.volume() == 0) continue;
    int64_t offset = 0;
    for (int64_t d = 0; d < box.rank(); ++d) offset += box.origin[d] * byte_strides[d];
    BufferRef buffer = array.storage()->buffer(array.buffer_number(position));
    const StridedCopy copy(static_cast<std::byte*>(data) + offset, byte_strides, buffer.data(),
                           row_major_strides(box.shape, size), box.shape, size, array.nbytes());
    batch.hold(std::move(buffer));
    batch.add(copy, (*sharding.devices())[position]->lane());
  }
  run(batch);
}

}  // namespace

std::shared_ptr<const HostView> device_get(const ArrayRef& array) {
  array->check_alive("device_get");
  wait_for(array->ready_event());
  if (auto cached = array->cached_host_value(); cached && cached->shape == array->shape()) return cached;
  const ShardDomains domains = array->sharding()->domains(array->shape(), "device_get");
  BufferRef whole = find_whole(*array, domains);
  if (whole.block) return show(*array, whole);

  try {
    whole.block = (*array->sharding()->devices())[0]->arena().allocate(array->nbytes());
  } catch (const OutOfMemory& error) {
    fail_out_of_memory("device_get", "the host", array->nbytes(), error, *array->sharding()->devices()->client(),
                       "delete arrays that are no longer needed, or get shard by shard");
  }
  auto view = show(*array, whole);
  gather(*array, domains, view->data, view->byte_strides);
  return array->cache_host_value(std::move(view));
}

void device_get_into(const ArrayRef& array, const HostView& destination) {
  constexpr std::string_view kOperation = "device_get_into";
  array->check_alive(kOperation);
  std::string wrong;
  const auto differ = [&wrong](std::string_view what, const auto& expected, const auto& got) {
    wrong += fmt::format("{}{}: expected {}, got {}", wrong.empty() ? "" : "; ", what, expected, got);
  };
  if (destination.shape != array->shape()) differ("shape", to_string(array->shape()), to_string(destination.shape));
  if (destination.dtype != array->dtype()) differ("dtype", name(array->dtype()), name(destination.dtype));
  if (destination.byte_strides.size() != destination.shape.size()) {
    differ("number of strides", destination.shape.size(), destination.byte_strides.size());
  }
  if (!destination.writable) differ("writable", true, false);
  if (!wrong.empty()) {
    fail("{}: destination does not fit the array; {}; give a writable array of the same shape and dtype", kOperation,
         wrong);
  }
  wait_for(array->ready_event());
  gather(*array, array->sharding()->domains(array->shape(), kOperation), destination.data, destination.byte_strides);
}

}  // namespace artifex_devices
