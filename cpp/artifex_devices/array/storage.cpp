// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/array/storage.h"

#include <algorithm>
#include <cstring>

#include "artifex_devices/array/live_arrays.h"
#include "artifex_devices/base/throw_error.h"

namespace artifex_devices {
namespace {

constexpr int kUnwritten = 0xA5;  // each byte of memory that waits for a deferred copy

void check_kind(const Block& block, const MemorySpace& wanted, BufferId buffer, std::string_view operation) {
  if (can_hold(wanted, block)) return;
  throw_error("{}: buffer {} is in {} memory; expected {}, the memory kind of the sharding; copy it by device_put",
              operation, buffer.number(), block.is_foreign() ? "foreign" : to_string(block.space()->kind()),
              to_string(wanted.kind()));
}

[[noreturn, gnu::cold]] void throw_deleted() {
  throw_error<DeletedArray>("buffer: the Array was deleted; create it again, or delete it only after its last use");
}

void check_client(const Sharding& sharding, std::string_view operation) {
  const Client& client = *sharding.devices()->client();
  if (client.is_compile_only()) {
    throw_error<Unavailable>(
        "{}: {} has no memory: it is for planning only, of a simulated cluster or a topology; place data on devices of "
        "this machine",
        operation, sharding.devices()->front()->to_string());
  }
  if (client.is_closed()) {
    throw_error<Unavailable>(
        "{}: the client of {} was closed; expected devices of an open client; create another client, or use devices()",
        operation, sharding.devices()->front()->to_string());
  }
}

ShardBytes checked_bytes_of(const Sharding& sharding, const ShardDomains& domains, DType dtype,
                            std::string_view operation) {
  check_client(sharding, operation);
  return {sharding, domains, dtype, Storage::kSlabAlignment - 1, operation};
}

}  // namespace

Storage::Storage(ShardingRef sharding, ShardBytes bytes, std::string_view operation)
    : sharding_(std::move(sharding)), charge_(*sharding_, std::move(bytes), operation) {}

Storage::~Storage() {
  end_all();
  close();
  delete block_users_.load(std::memory_order_acquire);
}

int64_t Storage::stride_of_tiles() const noexcept {
  return (bytes().tile() + kSlabAlignment - 1) / kSlabAlignment * kSlabAlignment;
}

std::shared_ptr<Storage> Storage::allocate(ShardingRef sharding, const ShardDomains& domains, DType dtype,
                                           std::string_view operation) {
  ShardBytes bytes = checked_bytes_of(*sharding, domains, dtype, operation);
  auto storage = std::make_shared<Storage>(std::move(sharding), std::move(bytes), operation);
  storage->allocate_blocks(operation);
  if (storage->client().defers_copies()) storage->mark_unwritten({});
  return storage;
}

std::shared_ptr<Storage> Storage::adopt(ShardingRef sharding, const ShardDomains& domains, DType dtype,
                                        BufferRefs buffers, std::string_view operation) {
  ShardBytes bytes = checked_bytes_of(*sharding, domains, dtype, operation);
  if (buffers.size() != sharding->buffers().size()) {
    throw_error("{}: {} buffers for a sharding that has {}; give one for each distinct shard of an arena", operation,
                buffers.size(), sharding->buffers().size());
  }
  bool any = false;
  for (const BufferId b : buffers.ids()) {
    BufferRef& buffer = buffers[b];
    if (!buffer.block) continue;
    const int64_t needed = bytes.of_buffer(b);
    const int64_t room = buffer.block->bytes() - buffer.offset;
    if (needed == 0 && (buffer.offset < 0 || room < 0)) {
      buffer = {};  // an empty view with a negative stride points outside its memory, and needs none
      continue;
    }
    any = true;
    if (buffer.offset < 0 || room < needed) {
      throw_error("{}: buffer {} has {} bytes from its offset on; expected {}", operation, b.number(), room, needed);
    }
    check_kind(*buffer.block, sharding->device(b).space(sharding->memory_kind()), b, operation);
  }
  auto storage = std::make_shared<Storage>(std::move(sharding), std::move(bytes), operation);
  if (any && storage->take_slab(buffers)) return storage;
  const bool marks = storage->client().defers_copies();
  IdVector<BufferId, bool> is_given(marks ? buffers.size() : 0);
  for (const BufferId b : is_given.ids()) is_given[b] = bool(buffers[b].block);
  if (any) storage->buffers_ = std::move(buffers);
  storage->allocate_blocks(operation);
  if (marks) storage->mark_unwritten(is_given);
  return storage;
}

/// Takes the buffers if they are a slab.
bool Storage::take_slab(BufferRefs& buffers) noexcept {
  const int64_t stride = stride_of_tiles();
  BufferRef& first = buffers[BufferId(0)];
  int64_t offset = first.offset;
  for (const BufferRef& buffer : buffers) {
    if (buffer.block != first.block || buffer.offset != std::exchange(offset, offset + stride)) return false;
  }
  stride_ = stride;
  slab_data_ = first.device_data();
  slab_ = std::move(first.block);
  return true;
}

void Storage::mark_unwritten(const IdVector<BufferId, bool>& is_given) {
  for (const BufferId b : buffer_ids()) {
    if (!is_given.empty() && is_given[b]) continue;
    if (buffer_bytes(b) > 0) std::memset(device_data(b), kUnwritten, buffer_bytes(b));
  }
}

void Storage::allocate_blocks(std::string_view operation) {
  const int64_t count = buffer_count();
  const int64_t tile_bytes = bytes().tile();
  if (count == 0) return;  // all of it is in other processes
  int64_t asked = 0;
  Device* where = &sharding_->device(BufferId(0));
  try {
    if (buffers_.empty() && (count == 1 || (tile_bytes < kSlabShardBytes && sharding_->devices()->on_one_arena()))) {
      stride_ = stride_of_tiles();
      asked = stride_ * (count - 1) + tile_bytes;
      slab_ = where->space(kind()).allocate(asked);
      slab_data_ = slab_->device_data();
      return;
    }
    if (buffers_.empty()) buffers_ = BufferRefs(count);
    if (tile_bytes < kSlabShardBytes) {
      asked = tile_bytes;
      allocate_slabs();
      return;
    }
    for (const BufferId b : buffer_ids()) {
      BufferRef& buffer = buffers_[b];
      if (buffer.block) continue;
      where = &sharding_->device(b);
      asked = buffer_bytes(b);
      buffer = {where->space(kind()).allocate(asked), 0};
    }
  } catch (const OutOfMemory& error) {  // destroying this object undoes its charges and allocations
    fail_out_of_memory(operation, where->to_string(), asked, error, client(), kFreeMemory);
  } catch (const std::bad_alloc&) {
    throw_error<OutOfMemory>("RESOURCE_EXHAUSTED: {}: no memory for the list of {} buffers; {}", operation, count,
                             kFreeMemory);
  }
}

/// One slab an arena, for the buffers that have no block yet.
void Storage::allocate_slabs() {
  const int64_t stride = stride_of_tiles();
  IdVector<ArenaIndex, int64_t> wanted(client().arenas());
  IdVector<BufferId, ArenaIndex> arenas(buffer_count());
  for (const BufferId b : buffer_ids()) {
    if (buffers_[b].block) continue;
    arenas[b] = sharding_->device(b).arena_index();
    buffers_[b].offset = stride * wanted[arenas[b]]++;
  }
  IdVector<ArenaIndex, BlockRef> slabs(wanted.size());
  for (const ArenaIndex a : slabs.ids()) {
    if (wanted[a] == 0) continue;
    MemorySpace& space = client().space(a, kind());
    slabs[a] = space.allocate(stride * (wanted[a] - 1) + bytes().tile());
  }
  for (const BufferId b : buffer_ids()) {
    if (!arenas[b].is_none()) buffers_[b].block = slabs[arenas[b]];
  }
}

BufferRef Storage::buffer(BufferId buffer) const {
  if (gate_.enter()) {
    BufferRef found;
    if (slab_) {
      found = {slab_, slab_data_ - slab_->device_data() + buffer.number() * stride_};
    } else {
      found = buffers_[buffer];
    }
    leave();
    if (found.block) return found;
  }
  throw_deleted();
}

HeldBuffers Storage::hold() const {
  HeldBuffers found;
  if (slab_data_ == nullptr) found.buffers = BufferRefs(buffer_count());
  if (!gate_.enter()) throw_deleted();
  if (slab_) {
    found = {slab_, slab_data_, stride_};
  } else {
    std::ranges::copy(buffers_, found.buffers.begin());
  }
  leave();
  return found;
}

void Storage::leave() const noexcept {
  if (gate_.leave()) drop_blocks();
}

void Storage::close() const noexcept {
  if (gate_.close()) drop_blocks();
}

void Storage::drop_blocks() const noexcept {
  const bool to_system = deletion() == Deletion::kToSystem;
  if (to_system && slab_) slab_->mark_for_system();
  slab_ = BlockRef();
  for (BufferRef& buffer : buffers_) {
    if (to_system && buffer.block) buffer.block->mark_for_system();
    buffer.block = BlockRef();
  }
}

void Storage::retain(Position position) {
  if (position.is_none()) {
    global_handles_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  if (!block_users_.load(std::memory_order_acquire) && !add_block_users()) return;
  charge_.split();
  charge_.retain(position);
}

/// Returns false once the blocks are gone.
bool Storage::add_block_users() {
  IdVector<BufferId, const Block*> block_of(buffer_count());
  if (!gate_.enter()) return false;
  for (const BufferId b : buffer_ids()) block_of[b] = slab_ ? &*slab_ : &*buffers_[b].block;
  leave();
  auto made = std::make_unique<BlockUsers>(*sharding_, charge_, block_of);
  BlockUsers* current = nullptr;
  if (block_users_.compare_exchange_strong(current, made.get(), std::memory_order_acq_rel)) made.release();
  return true;
}

void Storage::release(Position position) noexcept {
  if (!position.is_none()) {
    if (charge_.release(position)) end_position(position);
    return;
  }
  if (global_handles_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  host_value_.close();
  if (charge_.end_unsplit()) {
    close();
    return;
  }
  charge_.for_positions([this](Position p) {
    if (charge_.release(p)) end_position(p);
  });
}

void Storage::delete_all(Deletion how) noexcept {
  Deletion none = Deletion::kNone;
  if (!deletion_.compare_exchange_strong(none, how, std::memory_order_acq_rel)) return;
  host_value_.close();
  close();  // before the counts: no thread may remove blocks while another thread reads them
  end_all();
}

/// Ends every handle that is left.
void Storage::end_all() noexcept {
  if (charge_.end_unsplit()) return;
  charge_.for_positions([this](Position p) {
    if (charge_.end(p)) end_position(p);
  });
}

void Storage::end_position(Position position) noexcept {
  BlockUsers& users = *block_users_.load(std::memory_order_acquire);
  const BufferId first = users.end(position);
  if (first.is_none()) return;
  if (!slab_data_ && gate_.enter()) {
    for (BufferId b = first; !b.is_none(); b = users.next_in_group(b)) buffers_[b].block = BlockRef();
    leave();
  }
  if (users.has_ended()) close();
}

}  // namespace artifex_devices
