// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <string_view>
#include <vector>

#include "artifex_devices/array/host_view.h"
#include "artifex_devices/base/dtype.h"
#include "artifex_devices/device/block.h"
#include "artifex_devices/sharding/sharding.h"

namespace artifex_devices {

/// The block and offset of one distinct buffer of an array.
struct BufferRef {
  BlockRef block;
  int64_t offset = 0;
  std::byte* host_data() const { return block->host_data() + offset; }  // throws as Block::host_data
  std::byte* device_data() const noexcept { return block->device_data() + offset; }
};

/// References to all buffers of an array, which keep the memory alive after a delete: one reference for a slab.
struct HeldBuffers {
  BlockRef slab;  // null: `buffers` has a reference for each
  std::byte* slab_data = nullptr;
  int64_t stride = 0;
  std::vector<BufferRef> buffers = {};
  /// Block::device_data of a buffer.
  std::byte* device_data(size_t number) const noexcept {
    return slab ? slab_data + static_cast<int64_t>(number) * stride : buffers[number].device_data();
  }
};

/// The memory of one array in this process: its buffers (numbered by Sharding::buffers()), the bytes charged to each
/// device, and whether they were deleted. Shared by the global array and the arrays of its shards. Only devices of this
/// process are charged; without any there is no buffer.
///
/// Shards below 256 KiB that share an arena share one slab at 64-byte strides, in buffer order; larger ones have a
/// block each. The memory is of the sharding's kind. Each device is charged the bytes of its shard until its last
/// handle is gone: the global array counts as a handle on every device, a shard as one on its device. `delete_all` ends
/// all handles at once. Thread-safe without locks, so it is consistent in a forked child.
class Storage {
 public:
  static constexpr int64_t kSlabShardBytes = int64_t{256} << 10;
  static constexpr int64_t kSlabAlignment = 64;

  /// Charges the devices and allocates; on failure everything is undone. Throws OutOfMemory (text begins with
  /// "RESOURCE_EXHAUSTED"; names the requested bytes, the bytes in use and the limit of the device, and the largest
  /// live arrays), InvalidArgument for bytes that do not fit 63 bits, or Unavailable for compile-only devices.
  static std::shared_ptr<Storage> allocate(ShardingRef sharding, const ShardDomains& domains, DType dtype,
                                           std::string_view operation);
  /// Takes existing buffers (assembled arrays, aliased host memory, resharded parts), one for each buffer number; those
  /// without a block are allocated. Charges the devices and throws as allocate does; InvalidArgument for blocks of
  /// another memory kind than the sharding's.
  static std::shared_ptr<Storage> adopt(ShardingRef sharding, const ShardDomains& domains, DType dtype,
                                        std::vector<BufferRef> buffers, std::string_view operation);
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;
  ~Storage();

  const ShardingRef& sharding() const noexcept { return sharding_; }
  int64_t buffer_count() const noexcept { return count_; }
  /// Throws DeletedArray. The reference keeps the memory alive after a delete.
  BufferRef buffer(int64_t number) const;
  /// All buffers; as buffer(), in one step.
  HeldBuffers hold() const;
  /// Block::device_data of a buffer. Without a check or a reference, for the caller that has just allocated it.
  std::byte* device_data(int64_t number) const noexcept {
    return slab_data_ ? slab_data_ + number * stride_ : buffers_[static_cast<size_t>(number)].device_data();
  }
  int64_t buffer_bytes(int64_t number) const noexcept {  // of the tile's elements
    return uneven_bytes_.empty() ? tile_bytes_ : uneven_bytes_[static_cast<size_t>(number)];
  }
  /// The slab that contains all buffers, `stride` apart, so that element-wise work can be one call; null otherwise.
  /// Block::device_data of it.
  /// Hold a buffer() while using it.
  std::byte* slab(int64_t* stride) const noexcept {
    *stride = stride_;
    return slab_data_;
  }
  bool is_foreign() const noexcept { return foreign_; }
  /// The bytes of all positions, including replicas and those of other processes.
  int64_t charged_bytes() const noexcept;

  /// Handles: position -1 is the global array. The caller that retains a position has a handle on it, or on the global
  /// array, already.
  void retain(int64_t position);
  void release(int64_t position) noexcept;
  /// With `to_system`, large blocks return to the system instead of to the cache.
  void delete_all(bool to_system = true) noexcept;
  bool is_deleted() const noexcept { return deleted_.load(std::memory_order_acquire); }
  /// delete_all, recorded as a donation; the memory stays with the new owner.
  void donate() noexcept;
  bool was_donated() const noexcept { return donated_.load(std::memory_order_relaxed); }

  /// Caches a value gathered from the global array (perhaps still being written: see its `ready`) until its last handle
  /// is gone or delete_all. The first one stays and is returned (or `value` itself after a delete).
  std::shared_ptr<const HostView> cached_host_value() const;
  std::shared_ptr<const HostView> cache_host_value(std::shared_ptr<const HostView> value);

 protected:
  Storage() = default;

 private:
  struct Shares;
  static Shares* ended() noexcept;
  static std::shared_ptr<Storage> make(ShardingRef sharding, const ShardDomains& domains, DType dtype,
                                       std::string_view operation);

  void charge(std::string_view operation);
  void allocate_blocks(std::string_view operation);
  /// Fills the buffers that were not given, for clients that defer copies.
  [[gnu::cold]] void mark_unwritten(const std::vector<bool>& is_given);
  void allocate_slabs();

  Device* device(int64_t position) const noexcept { return (*sharding_->devices())[position]; }
  int64_t buffer_of(int64_t position) const noexcept { return sharding_->buffer_at(position); }
  Device* device_of_buffer(int64_t number) const noexcept { return device(sharding_->position_of(number)); }
  MemoryKind kind() const noexcept { return sharding_->memory_kind(); }
  int64_t position_bytes(int64_t position) const noexcept {
    return uneven_bytes_.empty() ? tile_bytes_ : buffer_bytes(buffer_of(position));
  }

  bool enter() const noexcept;
  void leave() const noexcept;
  void close() const noexcept;
  void drop_blocks() const noexcept;
  void drop_host_value() const noexcept;

  /// f(position) for the first `count` devices of this process.
  template <class F>
  void for_positions(int64_t count, F&& f) const {
    const DeviceList& devices = *sharding_->devices();
    if (devices.is_fully_addressable()) {
      for (int64_t p = 0; p < count; ++p) f(p);
    } else {
      for (int64_t i = 0; i < count; ++i) f(devices.addressable_position(i));
    }
  }
  int64_t position_count() const noexcept { return sharding_->devices()->addressable_count(); }
  void discharge_first(int64_t positions) const noexcept;
  Shares* split();
  void end_all() noexcept;
  void end_whole() noexcept;
  void drop_handle(Shares& shares, int64_t position) noexcept;
  void end_position(Shares& shares, int64_t position) noexcept;

  ShardingRef sharding_;
  int64_t count_ = 0;
  int64_t tile_bytes_ = 0;             // of every buffer, unless
  std::vector<int64_t> uneven_bytes_;  // has sizes by buffer; then
  int64_t uneven_total_ = 0;           // is the total of all positions
  bool foreign_ = false;

  // One slab (also: one buffer), or a reference for each buffer. Dropped by the last reader of a closed storage.
  mutable BlockRef slab_;
  mutable std::vector<BufferRef> buffers_;
  std::byte* slab_data_ = nullptr;
  int64_t stride_ = 0;

  // The number of threads reading the references, and whether it is closed to others. A count instead of a lock: a
  // forked child never waits, and at worst leaks a block.
  mutable std::atomic<int64_t> readers_{0};
  mutable std::atomic<std::shared_ptr<const HostView>*> host_value_{nullptr};
  std::atomic<int64_t> whole_{0};
  // Handles by position. Null: only the global array so far; ended(): no handle and no charge.
  std::atomic<Shares*> shares_{nullptr};
  std::atomic<bool> deleted_{false};
  std::atomic<bool> donated_{false};
  std::atomic<bool> to_system_{false};
};

}  // namespace artifex_devices
