// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/array/storage.h"

#include <algorithm>
#include <cstring>

#include "artifex_devices/array/live_arrays.h"
#include "artifex_devices/array/shares.h"
#include "artifex_devices/base/byte_count.h"
#include "artifex_devices/base/bytes_text.h"
#include "artifex_devices/base/throw_error.h"

namespace artifex_devices {
namespace {

constexpr int64_t kClosed = int64_t{1} << 62;
constexpr int kUnwritten = 0xA5;  // each byte of memory that waits for a deferred copy

int64_t round_up(int64_t value, int64_t unit) noexcept { return (value + unit - 1) / unit * unit; }

void check_kind(const Block& block, const MemorySpace& wanted, int64_t number, std::string_view operation) {
  if (can_hold(wanted, block)) return;
  throw_error("{}: buffer {} is in {} memory; expected {}, the memory kind of the sharding; copy it by device_put",
              operation, number, block.is_foreign() ? "foreign" : to_string(block.space()->kind()),
              to_string(wanted.kind()));
}

constexpr std::string_view kRepair =
    "delete arrays that are no longer needed, raise the limit, or shard over more devices";

}  // namespace

std::shared_ptr<Storage> Storage::make(ShardingRef sharding, const ShardDomains& domains, DType dtype,
                                       std::string_view operation) {
  const Client& client = *sharding->devices()->client();
  if (client.is_compile_only()) {
    throw_error<Unavailable>(
        "{}: {} has no memory: it is for planning only, of a simulated cluster or a topology; place data on devices of "
        "this machine",
        operation, (*sharding->devices())[0]->to_string());
  }
  if (client.is_closed()) {
    throw_error<Unavailable>(
        "{}: the client of {} was closed; expected devices of an open client; create another one, or use devices()",
        operation, (*sharding->devices())[0]->to_string());
  }
  struct Concrete final : Storage {};
  auto storage = std::make_shared<Concrete>();
  Storage& self = *storage;
  self.shares_.store(ended(), std::memory_order_relaxed);  // nothing is charged yet
  self.count_ = sharding->buffers().size();
  const auto tile_bytes = dense_bytes(domains.shard_shape(), itemsize(dtype));
  const auto padded = tile_bytes ? checked_add(*tile_bytes, kSlabAlignment - 1) : std::nullopt;
  // The biggest number that comes up is the charge of all positions together.
  if (!padded || !checked_mul(*padded, sharding->num_devices())) {
    throw_error("{}: shards of shape {} of {} on {} devices are more bytes than fit 63 bits{}; use smaller sizes",
                operation, to_string(domains.shard_shape()), name(dtype), sharding->num_devices(),
                note_on_zeros(domains.shard_shape()));
  }
  self.tile_bytes_ = *tile_bytes;
  if (!domains.is_even()) {
    self.uneven_bytes_.reserve(static_cast<size_t>(self.count_));
    for (int64_t b = 0; b < self.count_; ++b) {
      const int64_t tile = domains.grid().tile(sharding->position_of(b));
      self.uneven_bytes_.push_back(domains.domain(tile).volume() * itemsize(dtype));
    }
    const TileGrid& grid = domains.grid();
    for (int64_t p = 0; p < grid.positions(); ++p) {
      self.uneven_total_ += domains.domain(grid.tile(p)).volume() * itemsize(dtype);
    }
  }
  self.sharding_ = std::move(sharding);
  return storage;
}

std::shared_ptr<Storage> Storage::allocate(ShardingRef sharding, const ShardDomains& domains, DType dtype,
                                           std::string_view operation) {
  auto storage = make(std::move(sharding), domains, dtype, operation);
  storage->charge(operation);
  storage->allocate_blocks(operation);
  if (storage->sharding_->devices()->client()->defers_copies()) storage->mark_unwritten({});
  return storage;
}

std::shared_ptr<Storage> Storage::adopt(ShardingRef sharding, const ShardDomains& domains, DType dtype,
                                        std::vector<BufferRef> buffers, std::string_view operation) {
  auto storage = make(std::move(sharding), domains, dtype, operation);
  const auto given = static_cast<int64_t>(buffers.size());
  if (given != storage->count_) {
    throw_error("{}: {} buffers for a sharding that has {}; give one for each distinct shard of an arena", operation,
                given, storage->count_);
  }
  bool any = false;
  for (int64_t b = 0; b < given; ++b) {
    BufferRef& buffer = buffers[static_cast<size_t>(b)];
    if (!buffer.block) continue;
    const int64_t room = buffer.block->bytes() - buffer.offset;
    if (storage->buffer_bytes(b) == 0 && (buffer.offset < 0 || room < 0)) {
      buffer = {};  // an empty view with a negative stride points outside its memory, and needs none
      continue;
    }
    any = true;
    if (buffer.offset < 0 || room < storage->buffer_bytes(b)) {
      throw_error("{}: buffer {} has {} bytes from its offset on; expected {}", operation, b, room,
                  storage->buffer_bytes(b));
    }
    check_kind(*buffer.block, storage->device_of_buffer(b)->space(storage->kind()), b, operation);
    storage->foreign_ = storage->foreign_ || buffer.block->is_foreign();
  }
  storage->charge(operation);
  const int64_t stride = round_up(storage->tile_bytes_, kSlabAlignment);
  bool is_slab = any;
  for (int64_t b = 0; b < given && is_slab; ++b) {
    const BufferRef& buffer = buffers[static_cast<size_t>(b)];
    is_slab = buffer.block == buffers[0].block && buffer.offset == buffers[0].offset + b * stride;
  }
  if (is_slab) {
    storage->stride_ = stride;
    storage->slab_data_ = buffers[0].device_data();
    storage->slab_ = std::move(buffers[0].block);
    return storage;
  }
  const bool marks = storage->sharding_->devices()->client()->defers_copies();
  std::vector<bool> is_given;
  for (int64_t b = 0; marks && b < given; ++b) is_given.push_back(bool(buffers[static_cast<size_t>(b)].block));
  if (any) storage->buffers_ = std::move(buffers);
  storage->allocate_blocks(operation);
  if (marks) storage->mark_unwritten(is_given);
  return storage;
}

void Storage::charge(std::string_view operation) {
  int64_t charged = 0;
  int64_t full = -1;  // the first position that cannot take its part
  for_positions(position_count(), [&](int64_t p) {
    if (full >= 0) return;
    if (device(p)->try_charge(position_bytes(p), kind())) {
      ++charged;
    } else {
      full = p;
    }
  });
  if (full >= 0) {
    const int64_t p = full;
    const int64_t asked = position_bytes(p);
    discharge_first(charged);
    const DeviceMemoryStats stats = device(p)->memory_stats();
    throw_error<OutOfMemory>(
        "RESOURCE_EXHAUSTED: {}: out of memory on {}: {} bytes ({}) asked for, {} bytes ({}) in use, limit {} bytes "
        "({}); biggest live arrays: {}; {}",
        operation, device(p)->to_string(), asked, bytes_text(asked), stats.bytes_in_use, bytes_text(stats.bytes_in_use),
        stats.bytes_limit, bytes_text(stats.bytes_limit), biggest_live_arrays(*sharding_->devices()->client(), 3),
        kRepair);
  }
  shares_.store(nullptr, std::memory_order_relaxed);  // charged: from here on the destructor discharges
}

void Storage::mark_unwritten(const std::vector<bool>& is_given) {
  for (int64_t b = 0; b < count_; ++b) {
    if (static_cast<size_t>(b) < is_given.size() && is_given[static_cast<size_t>(b)]) continue;
    if (buffer_bytes(b) > 0) std::memset(device_data(b), kUnwritten, static_cast<size_t>(buffer_bytes(b)));
  }
}

void Storage::allocate_blocks(std::string_view operation) {
  if (count_ == 0) return;  // all of it is in other processes
  int64_t asked = 0;
  Device* where = device_of_buffer(0);
  try {
    if (buffers_.empty() && (count_ == 1 || (tile_bytes_ < kSlabShardBytes && sharding_->devices()->on_one_arena()))) {
      stride_ = round_up(tile_bytes_, kSlabAlignment);
      asked = stride_ * (count_ - 1) + tile_bytes_;
      slab_ = where->space(kind()).allocate(asked);
      slab_data_ = slab_->device_data();
      return;
    }
    buffers_.resize(static_cast<size_t>(count_));
    if (tile_bytes_ < kSlabShardBytes) {
      asked = tile_bytes_;
      allocate_slabs();
      return;
    }
    for (int64_t b = 0; b < count_; ++b) {
      BufferRef& buffer = buffers_[static_cast<size_t>(b)];
      if (buffer.block) continue;
      where = device_of_buffer(b);
      asked = buffer_bytes(b);
      buffer = {where->space(kind()).allocate(asked), 0};
    }
  } catch (const OutOfMemory& error) {  // destroying this object undoes its charges and allocations
    fail_out_of_memory(operation, where->to_string(), asked, error, *sharding_->devices()->client(), kRepair);
  } catch (const std::bad_alloc&) {
    throw_error<OutOfMemory>("RESOURCE_EXHAUSTED: {}: no memory for the list of {} buffers; {}", operation, count_,
                             kRepair);
  }
}

/// One slab an arena, for the buffers that have no block yet.
void Storage::allocate_slabs() {
  const int64_t stride = round_up(tile_bytes_, kSlabAlignment);
  std::vector<int64_t> wanted(static_cast<size_t>(sharding_->devices()->client()->arenas()), 0);
  std::vector<int64_t> arenas(buffers_.size(), -1);
  for (int64_t b = 0; b < count_; ++b) {
    const auto i = static_cast<size_t>(b);
    if (buffers_[i].block) continue;
    arenas[i] = device_of_buffer(b)->arena_index();
    buffers_[i].offset = stride * wanted[static_cast<size_t>(arenas[i])]++;
  }
  std::vector<BlockRef> slabs(wanted.size());
  for (size_t a = 0; a < slabs.size(); ++a) {
    if (wanted[a] == 0) continue;
    MemorySpace& space = sharding_->devices()->client()->space(static_cast<int>(a), kind());
    slabs[a] = space.allocate(stride * (wanted[a] - 1) + tile_bytes_);
  }
  for (size_t i = 0; i < buffers_.size(); ++i) {
    if (arenas[i] >= 0) buffers_[i].block = slabs[static_cast<size_t>(arenas[i])];
  }
}

int64_t Storage::charged_bytes() const noexcept {
  return uneven_total_ > 0 ? uneven_total_ : tile_bytes_ * sharding_->num_devices();
}

bool Storage::enter() const noexcept {
  int64_t readers = readers_.load(std::memory_order_relaxed);
  while ((readers & kClosed) == 0) {
    if (readers_.compare_exchange_weak(readers, readers + 1, std::memory_order_acquire, std::memory_order_relaxed)) {
      return true;
    }
  }
  return false;
}

void Storage::leave() const noexcept {
  if (readers_.fetch_sub(1, std::memory_order_acq_rel) == (kClosed | 1)) drop_blocks();
}

/// Nobody enters any more; the blocks go when the last one inside leaves.
void Storage::close() const noexcept {
  if (readers_.fetch_or(kClosed, std::memory_order_acq_rel) == 0) drop_blocks();
}

void Storage::drop_blocks() const noexcept {
  drop_host_value();
  const bool to_system = to_system_.load(std::memory_order_relaxed);
  if (to_system && slab_) slab_->mark_for_system();
  slab_ = BlockRef();
  for (BufferRef& buffer : buffers_) {
    if (to_system && buffer.block) buffer.block->mark_for_system();
    buffer.block = BlockRef();
  }
}

void Storage::drop_host_value() const noexcept { delete host_value_.exchange(nullptr, std::memory_order_acq_rel); }

namespace {

[[noreturn, gnu::cold]] void throw_deleted() {
  throw_error<DeletedArray>("buffer: the Array was deleted; create it again, or delete it only after its last use");
}

}  // namespace

BufferRef Storage::buffer(int64_t number) const {
  if (enter()) {
    BufferRef found;
    if (slab_) {
      found = {slab_, slab_data_ - slab_->device_data() + number * stride_};
    } else {
      found = buffers_[static_cast<size_t>(number)];
    }
    leave();
    if (found.block) return found;
  }
  throw_deleted();
}

HeldBuffers Storage::hold() const {
  HeldBuffers found;
  if (slab_data_ == nullptr) found.buffers.resize(static_cast<size_t>(count_));
  if (!enter()) throw_deleted();
  if (slab_) {
    found = {slab_, slab_data_, stride_};
  } else {
    std::ranges::copy(buffers_, found.buffers.begin());
  }
  leave();
  return found;
}

std::shared_ptr<const HostView> Storage::cached_host_value() const {
  std::shared_ptr<const HostView> found;
  if (!host_value_.load(std::memory_order_relaxed) || !enter()) return found;
  if (const auto* value = host_value_.load(std::memory_order_acquire)) found = *value;
  leave();
  return found;
}

std::shared_ptr<const HostView> Storage::cache_host_value(std::shared_ptr<const HostView> value) {
  auto kept = std::make_unique<std::shared_ptr<const HostView>>(std::move(value));
  if (!enter()) return *kept;
  std::shared_ptr<const HostView>* other = nullptr;
  auto result = *kept;
  if (host_value_.compare_exchange_strong(other, kept.get(), std::memory_order_acq_rel, std::memory_order_acquire)) {
    kept.release();
  } else {
    result = *other;
  }
  leave();
  return result;
}

}  // namespace artifex_devices
