// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "artifex_devices/base/dtype.h"
#include "artifex_devices/base/event.h"
#include "artifex_devices/device/block.h"
#include "artifex_devices/sharding/sharding.h"

namespace artifex_devices {

/// Where one distinct buffer of an array lies.
struct BufferRef {
  BlockRef block;
  int64_t offset = 0;
  std::byte* data() const noexcept { return block->data() + offset; }
};

/// The memory of one array: its buffers (numbered by Sharding::buffers()), what they cost each device, whether they were
/// deleted. Shared by the Arrays that show it: the whole one, and one for each shard that was taken out.
///
/// Shards below 256 KiB that share an arena share one slab at 64-byte strides, in buffer order; bigger ones have a block
/// each. Each device is charged the bytes of its shard until its last handle is gone: the whole array counts as a
/// handle on every device, a shard as one on its own. `delete_all` ends all handles at once. Thread-safe.
class Storage {
 public:
  static constexpr int64_t kSlabShardBytes = int64_t{256} << 10;

  /// Charges the devices and allocates; on failure everything is undone. Throws OutOfMemory (text begins with
  /// "RESOURCE_EXHAUSTED"; names bytes asked for, in use and limit of the device, and the biggest live arrays) or
  /// Unavailable for compile-only devices.
  static std::shared_ptr<Storage> allocate(ShardingRef sharding, const ShardDomains& domains, DType dtype,
                                           std::string_view operation);
  /// Takes ready-made buffers (assembled arrays, aliased host memory, resharded parts), one for each buffer number.
  /// Charges the devices as allocate does.
  static std::shared_ptr<Storage> adopt(ShardingRef sharding, const ShardDomains& domains, DType dtype,
                                        std::vector<BufferRef> buffers, std::string_view operation);
  ~Storage();

  const ShardingRef& sharding() const noexcept { return sharding_; }
  int64_t buffer_count() const noexcept;
  /// Throws DeletedArray. The reference keeps the memory alive through a delete.
  BufferRef buffer(int64_t number) const;
  /// Without a check or a count: for who has just allocated it.
  std::byte* data(int64_t number) const noexcept;
  int64_t buffer_bytes(int64_t number) const noexcept;  // of the tile's elements
  /// All buffers lie in one slab, `stride` apart: element-wise work can be one call. Null otherwise.
  std::byte* slab(int64_t* stride) const noexcept;
  bool is_foreign() const noexcept { return foreign_; }

  /// Handles: position -1 is the whole array.
  void retain(int64_t position);
  void release(int64_t position) noexcept;
  void delete_all() noexcept;
  bool is_deleted() const noexcept { return deleted_.load(std::memory_order_acquire); }

 private:
  Storage() = default;
  struct Parts;
  ShardingRef sharding_;
  // Implementation: see storage.cpp. The owner of the file may change everything below this line.
  std::unique_ptr<Parts> parts_;
  bool foreign_ = false;
  std::atomic<bool> deleted_{false};
};

}  // namespace artifex_devices
