// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/transfer/reshard.h"

#include <algorithm>
#include <optional>

#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/device/executor.h"
#include "artifex_devices/transfer/cross_reshard.h"
#include "artifex_devices/transfer/exchange_messages.h"
#include "artifex_devices/transfer/planned_copies.h"
#include "artifex_devices/transfer/recorded_transfer.h"
#include "artifex_devices/transfer/tiling.h"

namespace artifex_devices {
namespace {

constexpr std::string_view kOperation = "device_put";

/// One array on its way from one sharding to another.
struct Move {
  const Array& source;
  const ShardingRef& sharding;
  const ReshardOptions& options;
  LayoutRef layout;  // of the result
  bool force_copy;   // copies_all()
  int64_t size;      // of an element
  ShardDomains source_domains;
  ShardDomains domains;

  Move(const Array& from, const ShardingRef& to, const ReshardOptions& how)
      : source(from),
        sharding(to),
        options(how),
        layout(how.layout.value_or(from.layout())),
        force_copy(copies_all(from, *to, how)),
        size(itemsize(from.dtype())),
        source_domains(from.sharding()->domains(from.shape(), kOperation)),
        domains(to->domains(from.shape(), kOperation)) {}

  /// By number in the source's own sharding.
  BufferRef source_buffer(BufferId buffer) const {
    return source.storage()->buffer(source.is_shard() ? source.buffer_at(Position(0)) : buffer);
  }
  Executor& executor() const { return sharding->devices()->client()->executor(); }
};

PendingStorage submit(const Move& move, std::shared_ptr<Storage> storage, std::shared_ptr<CopyBatch> batch) {
  const int64_t bytes = batch->bytes();
  EventRef ready = move.executor().submit(std::move(batch), move.source.ready_event());
  return {std::move(storage), std::move(ready), bytes};
}

/// Submits the copies, and records them where a recording is open; `plan` returns the plan of the move.
template <class PlanOf>
PendingStorage submit_and_record(const Move& move, std::shared_ptr<Storage> storage, std::shared_ptr<CopyBatch> batch,
                                 PlanOf&& plan) {
  if (!is_recorded(Recorded::kTransfers)) return submit(move, std::move(storage), std::move(batch));
  TransferRun run{recorded_begin_ns(Recorded::kTransfers), batch->bytes()};
  PendingStorage moved = submit(move, std::move(storage), std::move(batch));
  run.ready = moved.ready;
  record_reshard(*plan(), *move.source.sharding(), *move.sharding, run);
  return moved;
}

/// Executes simple reshards within one memory without a plan: tiles of equal shapes are shared; other tiles are moved
/// by one copy if both ends are slabs. Returns nothing for other reshards.
std::optional<PendingStorage> move_tilings(const Move& move) {
  const Sharding& from = *move.source.sharding();
  const Sharding& to = *move.sharding;
  const bool in_one_memory = from.buffers().is_tile() && to.buffers().is_tile() &&
                             from.devices()->front()->arena_index() == to.devices()->front()->arena_index();
  const bool even = move.source_domains.is_even() && move.domains.is_even();
  if (!in_one_memory || !even || move.source.size() == 0) return std::nullopt;

  if (move.source_domains.shard_shape() == move.domains.shard_shape()) {
    if (move.force_copy) return std::nullopt;
    BufferRefs buffers;
    buffers.reserve(to.buffers().size());
    for (const BufferId b : to.buffers().ids()) buffers.push_back(move.source_buffer(b));
    auto storage = Storage::adopt(move.sharding, move.domains, move.source.dtype(), std::move(buffers), kOperation);
    return PendingStorage{std::move(storage), move.source.ready_event()};
  }

  const bool is_slab = to.grid().tiles() == 1 || move.source.nbytes() / to.grid().tiles() < Storage::kSlabShardBytes;
  if (!is_slab || !parts_divide(from.grid(), to.grid(), move.source.rank())) return std::nullopt;
  BufferRef held = move.source_buffer(BufferId(0));  // the whole slab
  Tiling from_tiles;
  if (from.grid().tiles() == 1) {
    from_tiles = {held.device_data(), move.source.strides(move.source.shape()), {}, 0};
  } else if (const auto tiles =
                 Tiling::of(*move.source.storage(), move.source_domains, move.source.layout().get(), move.size)) {
    from_tiles = *tiles;
  } else {
    return std::nullopt;
  }
  auto storage = Storage::allocate(move.sharding, move.domains, move.source.dtype(), kOperation);
  const auto to_tiles = Tiling::of(*storage, move.domains, move.layout.get(), move.size);
  if (!to_tiles) return std::nullopt;
  const auto plan = [&] { return make_plan(move.source, to, WorldPlaces(from), WorldPlaces(to), move.force_copy); };
  const StridedCopy copy = tiling_copy(*to_tiles, from_tiles, move.source.shape(), move.size);
  const EventRef& written = move.source.ready_event();
  if (move.executor().is_inline(copy.bytes()) && is_ready(written) && !(written && written->error())) {
    const int64_t begin_ns = recorded_begin_ns(Recorded::kTransfers);
    copy.run();
    if (is_recorded(Recorded::kTransfers)) record_reshard(*plan(), from, to, {begin_ns, copy.bytes()});
    return PendingStorage{std::move(storage), nullptr};
  }
  auto batch = std::make_shared<CopyBatch>();
  batch->add(copy, to.devices()->front()->lane());
  batch->hold(std::move(held.block));
  batch->hold(storage->buffer(BufferId(0)).block);
  return submit_and_record(move, std::move(storage), std::move(batch), plan);
}

/// `from` and `to`: the ends as the plan numbers their buffers. `records`: false where the caller records the transfer.
PendingStorage move_by_plan(const Move& move, std::shared_ptr<const ReshardPlan> plan, const WorldPlaces& from,
                            const WorldPlaces& to, bool records) {
  auto batch = std::make_shared<CopyBatch>();
  PlannedCopies::End source{{}, {}, move.source.layout()};
  source.data = IdVector<PlaceId, std::byte*>(from.places.size());
  IdVector<PlaceId, BufferRef> held(from.places.size());
  for (const PlaceId i : held.ids()) {
    if (from.local_buffers[i].is_none()) continue;
    held[i] = move.source_buffer(from.local_buffers[i]);
    source.data[i] = held[i].device_data();
  }
  if (move.source.sharding()->buffers().is_tile() && !move.source.is_shard()) {
    move.source.storage()->slab(&source.tile_stride);
  }
  BufferRefs buffers(move.sharding->buffers().size());
  PlannedCopies::End destination{{}, {}, move.layout};
  IdVector<PlaceId, bool> is_reused(to.places.size());
  for (const auto& [place, reused] : plan->reused()) {
    is_reused[place] = true;
    if (const BufferId own = to.local_buffers[place]; !own.is_none()) buffers[own] = held[reused];
  }
  PendingStorage moved{Storage::adopt(move.sharding, move.domains, move.source.dtype(), std::move(buffers), kOperation),
                       move.source.ready_event()};
  if (plan->copy_count() == 0) return moved;

  const Sharding& sharding = *move.sharding;
  destination.data = IdVector<PlaceId, std::byte*>(to.places.size());
  destination.lanes = IdVector<PlaceId, LaneId>(to.places.size());
  for (const PlaceId i : to.places.ids()) {
    const BufferId own = to.local_buffers[i];
    if (own.is_none() || is_reused[i]) continue;
    BufferRef buffer = moved.storage->buffer(own);
    destination.data[i] = buffer.device_data();
    destination.lanes[i] = sharding.device(own).lane();
    batch->hold(std::move(buffer.block));
  }
  const ProcessIndex process = sharding.devices()->client()->process_index();
  PlannedCopies::add_to(batch.get(),
                        std::make_shared<const PlannedCopies>(plan, std::move(source), std::move(destination), process),
                        sharding.devices()->client()->copy_engine());
  if (batch->bytes() == 0) return moved;
  for (BufferRef& buffer : held) {  // through a delete of the source meanwhile
    if (buffer.block) batch->hold(std::move(buffer.block));
  }
  if (!records) return submit(move, std::move(moved.storage), std::move(batch));
  return submit_and_record(move, std::move(moved.storage), std::move(batch), [&] { return plan; });
}

}  // namespace

bool copies_all(const Array& source, const Sharding& sharding, const ReshardOptions& options) {
  return options.force_copy || source.sharding()->memory_kind() != sharding.memory_kind() ||
         !equal_layouts(options.layout.value_or(source.layout()), source.layout());
}

std::shared_ptr<const ReshardPlan> make_plan(const Array& source, const Sharding& sharding, const WorldPlaces& from,
                                             const WorldPlaces& to, bool copies_all) {
  return std::make_shared<const ReshardPlan>(source.sharding()->domains(source.shape(), kOperation), from.places,
                                             sharding.domains(source.shape(), kOperation), to.places,
                                             itemsize(source.dtype()), copies_all);
}

PendingStorage execute_plan(const Array& source, const ShardingRef& sharding, const ReshardOptions& options,
                            std::shared_ptr<const ReshardPlan> plan, const WorldPlaces& from, const WorldPlaces& to) {
  return move_by_plan(Move(source, sharding, options), std::move(plan), from, to, false);
}

ReshardPlan plan_of_reshard(const Array& source, const Sharding& sharding) {
  const Sharding& from = *source.sharding();
  return *make_plan(source, sharding, WorldPlaces(from), WorldPlaces(sharding),
                    from.memory_kind() != sharding.memory_kind());
}

/// Between devices of several processes.
static ArrayRef reshard_between_processes(const ArrayRef& source, const ShardingRef& sharding,
                                          const ReshardOptions& options) {
  CrossReshard cross(source, sharding, options);
  const ProcessIndex own = cross.client()->process_index();
  if (!std::ranges::binary_search(cross.processes(), own)) {
    cross.begin();
    return cross.finish();
  }
  if (options.transport == nullptr) {
    throw_error<NotAddressable>(
        "{}: parts of the Array are in other processes; expected all parts in the current process {}; move it by "
        "device_put in all processes",
        kOperation, own.number());
  }
  const JointOperation operation{cross.client(), cross.text(), cross.processes()};
  const std::unique_ptr<Exchange> exchange = options.transport->exchange(operation);
  try {
    cross.begin();
  } catch (const std::exception& error) {  // other processes would wait
    options.transport->refuse(operation, error);
    throw;
  }
  try {
    exchange->begin(cross.identity());
    exchange_messages(cross, *exchange, options.transport->buffer_bytes());
    exchange->finish();
  } catch (const std::exception& error) {
    exchange->give_up(error);
    throw;
  }
  return cross.finish();
}

ArrayRef reshard(const ArrayRef& source, const ShardingRef& sharding, const ReshardOptions& options) {
  source->check_alive(kOperation);
  if (source->sharding()->devices()->client() != sharding->devices()->client()) {
    throw_error(
        "{}: the Array is on devices of another world than sharding {}; expected devices of one world; place its "
        "value: device_put(device_get(x), sharding)",
        kOperation, sharding->to_string());
  }
  if (!source->sharding()->is_fully_addressable() || !sharding->is_fully_addressable()) {
    return reshard_between_processes(source, sharding, options);
  }
  const Move move(*source, sharding, options);
  std::optional<PendingStorage> moved = move_tilings(move);
  if (!moved) {
    const WorldPlaces from(*source->sharding());
    const WorldPlaces to(*sharding);
    moved = move_by_plan(move, make_plan(*source, *sharding, from, to, move.force_copy), from, to, true);
  }
  ArrayRef result = Array::make(source->shape(), source->dtype(), sharding, std::move(moved->storage),
                                std::move(moved->ready), options.committed, move.layout);
  if (options.donate) source->donate();
  return result;
}

ArrayRef row_major(const ArrayRef& array) {
  if (!array->layout()) return array;
  return reshard(array, array->sharding(), {.committed = array->committed(), .layout = LayoutRef()});
}

}  // namespace artifex_devices
