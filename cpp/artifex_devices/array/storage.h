// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <string_view>
#include <vector>

#include "artifex_devices/array/block_users.h"
#include "artifex_devices/array/charge.h"
#include "artifex_devices/array/gate.h"
#include "artifex_devices/array/host_value_cache.h"
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

/// One for each buffer of a sharding in this process.
using BufferRefs = IdVector<BufferId, BufferRef>;

/// References that keep all buffers of an array alive after a delete: one reference for a slab.
struct HeldBuffers {
  BlockRef slab;  // null: `buffers` has a reference for each
  std::byte* slab_data = nullptr;
  int64_t stride = 0;
  BufferRefs buffers = {};
  /// Block::device_data of a buffer.
  std::byte* device_data(BufferId buffer) const noexcept {
    return slab ? slab_data + buffer.number() * stride : buffers[buffer].device_data();
  }
};

/// Kind of deletion of an array.
enum class Deletion : uint8_t {
  kNone,
  kToSystem,  // large blocks return to the system
  kToCache,
  kDonation,  // as kToCache: the memory stays with the new owner
};

/// The memory of one array in this process: its buffers, numbered by Sharding::buffers(). Shared by the global array
/// and the arrays of its shards. Without devices of this process there is no buffer.
///
/// Shards below 256 KiB that share an arena share one slab at 64-byte strides, in buffer order; larger ones have a
/// block each. The memory is of the sharding's kind. The devices are charged for it (Charge), and its blocks are
/// released, until the last handles are gone; `delete_all` ends all handles at once. Thread-safe without locks, so it
/// is consistent in a forked child.
class Storage {
 public:
  static constexpr int64_t kSlabShardBytes = int64_t{256} << 10;
  static constexpr int64_t kSlabAlignment = 64;

  /// Charges the devices and allocates; undoes both on failure. Throws as Charge, OutOfMemory if the system has no
  /// memory, InvalidArgument for bytes that do not fit 63 bits, and Unavailable for compile-only devices.
  static std::shared_ptr<Storage> allocate(ShardingRef sharding, const ShardDomains& domains, DType dtype,
                                           std::string_view operation);
  /// Takes existing buffers (assembled arrays, aliased host memory, resharded parts), one for each buffer number; those
  /// without a block are allocated. Charges the devices and throws as allocate does; InvalidArgument for blocks of
  /// another memory kind than the sharding's.
  static std::shared_ptr<Storage> adopt(ShardingRef sharding, const ShardDomains& domains, DType dtype,
                                        BufferRefs buffers, std::string_view operation);
  /// Charges the devices. Its buffers come from allocate() or adopt().
  Storage(ShardingRef sharding, ShardBytes bytes, std::string_view operation);
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;
  ~Storage();

  const ShardingRef& sharding() const noexcept { return sharding_; }
  int64_t buffer_count() const noexcept { return sharding_->buffers().size(); }
  /// Throws DeletedArray. The reference keeps the memory alive after a delete.
  BufferRef buffer(BufferId buffer) const;
  /// All buffers; as buffer(), in one step.
  HeldBuffers hold() const;
  /// Block::device_data of a buffer. Without a check or a reference, for the caller that has just allocated it.
  std::byte* device_data(BufferId buffer) const noexcept {
    return slab_data_ ? slab_data_ + buffer.number() * stride_ : buffers_[buffer].device_data();
  }
  const ShardBytes& bytes() const noexcept { return charge_.bytes(); }
  int64_t buffer_bytes(BufferId buffer) const noexcept { return bytes().of_buffer(buffer); }
  /// Block::device_data of the slab that contains all buffers, `stride` apart; null if there is no such slab.
  /// Element-wise work on a slab is one call. Hold a buffer() while using it.
  std::byte* slab(int64_t* stride) const noexcept {
    *stride = stride_;
    return slab_data_;
  }

  /// Handles: no position is the global array. The caller that retains a position has a handle on it, or on the global
  /// array, already.
  void retain(Position position);
  void release(Position position) noexcept;
  /// Only the first deletion counts.
  void delete_all(Deletion how = Deletion::kToSystem) noexcept;
  Deletion deletion() const noexcept { return deletion_.load(std::memory_order_acquire); }

  /// The value that was gathered from the global array; closed with its last handle or delete_all.
  HostValueCache& host_value() noexcept { return host_value_; }

 private:
  bool take_slab(BufferRefs& buffers) noexcept;
  void allocate_blocks(std::string_view operation);
  void allocate_slabs();
  /// Fills the buffers that were not given, for clients that defer copies.
  [[gnu::cold]] void mark_unwritten(const IdVector<BufferId, bool>& is_given);

  IdRange<BufferId> buffer_ids() const noexcept { return sharding_->buffers().ids(); }
  MemoryKind kind() const noexcept { return sharding_->memory_kind(); }
  Client& client() const noexcept { return *sharding_->devices()->client(); }
  int64_t stride_of_tiles() const noexcept;

  bool add_block_users();
  void end_all() noexcept;
  void end_position(Position position) noexcept;
  void close() const noexcept;
  void leave() const noexcept;
  void drop_blocks() const noexcept;

  ShardingRef sharding_;
  Charge charge_;
  HostValueCache host_value_;

  // One slab (also: one buffer), or a reference for each buffer. Dropped by the last reader inside a closed gate.
  mutable BlockRef slab_;
  mutable BufferRefs buffers_;
  mutable Gate gate_;
  std::byte* slab_data_ = nullptr;
  int64_t stride_ = 0;

  std::atomic<int64_t> global_handles_{0};
  std::atomic<BlockUsers*> block_users_{nullptr};  // once there are shards
  std::atomic<Deletion> deletion_{Deletion::kNone};
};

}  // namespace artifex_devices
