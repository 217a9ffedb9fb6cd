// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/transfer/reshard.h"

#include <optional>

#include "artifex_devices/base/config.h"
#include "artifex_devices/base/error.h"
#include "artifex_devices/transfer/copy_batch.h"
#include "artifex_devices/transfer/counters.h"
#include "artifex_devices/transfer/cross_reshard.h"
#include "artifex_devices/transfer/tiling.h"

namespace artifex_devices {
namespace {

constexpr std::string_view kOperation = "device_put";

int64_t offset_in(const IndexDomain& box, const Dims& tile_origin, const Dims& strides) noexcept {
  int64_t offset = 0;
  for (int64_t d = 0; d < box.rank(); ++d) offset += (box.origin[d] - tile_origin[d]) * strides[d];
  return offset;
}

/// In which order of dimensions tiles lie on both sides.
struct Layouts {
  const Layout* from;
  const Layout* to;
};

/// The plan as copies between memories. Takes a reference on every buffer that it reads or writes.
std::shared_ptr<CopyBatch> make_batch(const ReshardPlan& plan, const std::vector<BufferRef>& from,
                                      const ShardDomains& source_domains, const std::vector<BufferPlace>& source_places,
                                      const Storage& to, const ShardDomains& domains,
                                      const std::vector<BufferPlace>& places, const Layouts& layouts, int64_t size) {
  auto batch = std::make_shared<CopyBatch>();
  batch->reserve(static_cast<int64_t>(plan.copies.size()));
  const Sharding& sharding = *to.sharding();
  int64_t number = -1;  // copies come by destination
  std::byte* data = nullptr;
  int lane = 0;
  IndexDomain tile;
  Dims strides;
  for (const ReshardCopy& each : plan.copies) {
    if (each.destination != number) {
      number = each.destination;
      BufferRef buffer = to.buffer(number);
      data = buffer.data();
      batch->hold(std::move(buffer));
      lane = (*sharding.devices())[sharding.buffers().position(sharding.grid(), number)]->lane();
      tile = domains.domain(places[static_cast<size_t>(number)].tile);
      strides = buffer_strides(layouts.to, tile.shape, size);
    }
    const IndexDomain source_tile = source_domains.domain(source_places[static_cast<size_t>(each.source)].tile);
    const Dims source_strides = buffer_strides(layouts.from, source_tile.shape, size);
    batch->add(StridedCopy(data + offset_in(each.box, tile.origin, strides), strides,
                           from[static_cast<size_t>(each.source)].data() +
                               offset_in(each.box, source_tile.origin, source_strides),
                           source_strides, each.box.shape, size, plan.bytes_copied),
               lane);
  }
  return batch;
}

/// One array on its way from one sharding to another.
struct Move {
  const Array& source;
  const ShardingRef& sharding;
  const ReshardOptions& options;
  LayoutRef layout;  // of the result
  bool force_copy;   // also between kinds of memory, and between layouts
  int64_t size;      // of an element
  ShardDomains source_domains;
  ShardDomains domains;

  Move(const Array& from, const ShardingRef& to, const ReshardOptions& how)
      : source(from),
        sharding(to),
        options(how),
        layout(how.layout.value_or(from.layout())),
        force_copy(how.force_copy || from.sharding()->memory_kind() != to->memory_kind() ||
                   !equal_layouts(layout, from.layout())),
        size(itemsize(from.dtype())),
        source_domains(from.sharding()->domains(from.shape(), kOperation)),
        domains(to->domains(from.shape(), kOperation)) {}

  /// By number in the source's own sharding.
  BufferRef source_buffer(int64_t number) const {
    return source.storage()->buffer(source.position_in_storage() < 0 ? number : source.buffer_number(0));
  }
  bool source_is_good() const {
    const EventRef& ready = source.ready_event();
    return !ready || (ready->is_set() && !ready->error());
  }
};

/// What the plan comes to in one memory, without making it: tiles cut alike are shared, small ones cut differently are
/// copied in one go. Nothing where it is not as simple as that.
std::optional<Moved> move_tilings(const Move& move) {
  const Sharding& from = *move.source.sharding();
  const Sharding& to = *move.sharding;
  const bool in_one_memory = from.buffers().is_tile() && to.buffers().is_tile() &&
                             (*from.devices())[0]->arena_index() == (*to.devices())[0]->arena_index();
  const bool even = move.source_domains.is_even() && move.domains.is_even();
  if (!in_one_memory || !even || move.source.size() == 0) return std::nullopt;

  if (move.source_domains.shard_shape() == move.domains.shard_shape()) {
    if (move.force_copy) return std::nullopt;
    std::vector<BufferRef> buffers;
    buffers.reserve(static_cast<size_t>(to.buffers().size()));
    for (int64_t b = 0; b < to.buffers().size(); ++b) buffers.push_back(move.source_buffer(b));
    auto storage = Storage::adopt(move.sharding, move.domains, move.source.dtype(), std::move(buffers), kOperation);
    return Moved{std::move(storage), move.source.ready_event()};
  }

  const bool small = move.source.nbytes() < config().parallel_copy_bytes.load(std::memory_order_relaxed);
  if (!small || !move.source_is_good() || !parts_divide(from.grid(), to.grid(), move.source.rank()))
    return std::nullopt;
  const BufferRef held = move.source_buffer(0);  // all of a slab
  Tiling from_tiles;
  if (from.grid().tiles() == 1) {
    from_tiles = {held.data(), move.source.strides(move.source.shape()), {}, 0};
  } else if (const auto tiles =
                 Tiling::of(*move.source.storage(), move.source_domains, move.source.layout().get(), move.size)) {
    from_tiles = *tiles;
  } else {
    return std::nullopt;
  }
  auto storage = Storage::allocate(move.sharding, move.domains, move.source.dtype(), kOperation);
  const auto to_tiles = Tiling::of(*storage, move.domains, move.layout.get(), move.size);
  if (!to_tiles) return std::nullopt;
  const StridedCopy copy = tiling_copy(*to_tiles, from_tiles, move.source.shape(), move.size);
  copy.run();
  counters.device_to_device_bytes.fetch_add(copy.bytes(), std::memory_order_relaxed);
  return Moved{std::move(storage), nullptr};
}

Moved move_by_plan(const Move& move, std::optional<ReshardPlan> given = std::nullopt) {
  const Sharding& from = *move.source.sharding();
  const std::vector<BufferPlace> source_places = from.buffers().places(from.grid(), *from.devices());
  const std::vector<BufferPlace> places =
      move.sharding->buffers().places(move.sharding->grid(), *move.sharding->devices());
  ReshardPlan plan = given ? std::move(*given)
                           : make_reshard_plan(move.source_domains, source_places, move.domains, places, move.size);
  if (move.force_copy) copy_reused(&plan, move.domains, source_places, places, move.size);

  std::vector<BufferRef> held;  // through a delete of the source meanwhile
  held.reserve(source_places.size());
  for (int64_t b = 0; b < from.buffers().size(); ++b) held.push_back(move.source_buffer(b));
  std::vector<BufferRef> buffers(places.size());
  for (const auto& [to, reused] : plan.reused) buffers[static_cast<size_t>(to)] = held[static_cast<size_t>(reused)];
  Moved moved{Storage::adopt(move.sharding, move.domains, move.source.dtype(), std::move(buffers), kOperation),
              move.source.ready_event()};
  if (plan.copies.empty()) return moved;

  auto batch = make_batch(plan, held, move.source_domains, source_places, *moved.storage, move.domains, places,
                          {move.source.layout().get(), move.layout.get()}, move.size);
  if (move.source_is_good() && batch->bytes() < config().async_copy_bytes.load(std::memory_order_relaxed)) {
    batch->run();
    counters.device_to_device_bytes.fetch_add(batch->bytes(), std::memory_order_relaxed);
    moved.ready = nullptr;
  } else {
    for (BufferRef& buffer : held) batch->hold(std::move(buffer));
    moved.ready = start_after(moved.ready, std::move(batch), counters.device_to_device_bytes);
  }
  return moved;
}

}  // namespace

Moved execute_plan(const Array& source, const ShardingRef& sharding, const ReshardOptions& options, ReshardPlan plan) {
  return move_by_plan(Move(source, sharding, options), std::move(plan));
}

ReshardPlan plan_of_reshard(const Array& source, const Sharding& sharding) {
  const Sharding& from = *source.sharding();
  const int64_t size = itemsize(source.dtype());
  const ShardDomains domains = sharding.domains(source.shape(), kOperation);
  const std::vector<BufferPlace> source_places = WorldPlaces(from).places;
  const std::vector<BufferPlace> places = WorldPlaces(sharding).places;
  ReshardPlan plan = make_reshard_plan(from.domains(source.shape(), kOperation), source_places, domains, places, size);
  if (from.memory_kind() != sharding.memory_kind()) copy_reused(&plan, domains, source_places, places, size);
  return plan;
}

/// On devices of several processes, where each has what it needs.
static ArrayRef reshard_without_messages(const ArrayRef& source, const ShardingRef& sharding,
                                         const ReshardOptions& options) {
  CrossReshard cross(source, sharding, options);
  if (cross.has_messages()) {
    fail<NotAddressable>(
        "{}: parts of the Array would come from other processes; expected to find all of them in this one, {}; move "
        "it by device_put in all processes",
        kOperation, cross.client()->process_index());
  }
  cross.begin();
  return cross.finish();
}

ArrayRef reshard(const ArrayRef& source, const ShardingRef& sharding, const ReshardOptions& options) {
  source->check_alive(kOperation);
  if (source->sharding()->devices()->client() != sharding->devices()->client()) {
    fail(
        "{}: the Array lies on devices of another world than sharding {}; expected devices of one; get its value with "
        "device_get and put that",
        kOperation, sharding->to_string());
  }
  if (!source->sharding()->is_fully_addressable() || !sharding->is_fully_addressable()) {
    return reshard_without_messages(source, sharding, options);
  }
  const Move move(*source, sharding, options);
  std::optional<Moved> moved = move_tilings(move);
  if (!moved) moved = move_by_plan(move);
  ArrayRef result = Array::make(source->shape(), source->dtype(), sharding, std::move(moved->storage),
                                std::move(moved->ready), options.committed, move.layout);
  if (!sharding->devices()->client()->is_asynchronous()) result->block_until_ready();
  if (options.donate) source->donate();
  return result;
}

ArrayRef row_major(const ArrayRef& array) {
  if (!array->layout()) return array;
  return reshard(array, array->sharding(), {.committed = array->committed(), .layout = LayoutRef()});
}

TransferCounters transfer_counters() noexcept {
  return {counters.host_to_device_bytes.load(std::memory_order_relaxed),
          counters.device_to_host_bytes.load(std::memory_order_relaxed),
          counters.device_to_device_bytes.load(std::memory_order_relaxed)};
}

}  // namespace artifex_devices
