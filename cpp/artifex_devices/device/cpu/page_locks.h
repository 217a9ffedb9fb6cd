// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "artifex_devices/device/cpu/arena_lists.h"

namespace artifex_devices {

/// Locks the pages of a pinned arena in RAM, and counts them. Pages of cached blocks stay locked until other blocks
/// need them. Threads that lock pages of one chunk wait for each other here, so other threads need not wait under the
/// arena's lock. Thread-safe.
class PageLocks {
 public:
  explicit PageLocks(GuardedLists& lists) : lists_(lists) {}

  /// Locks the pages of a block that is about to be used, or records the failure (page_lock_trouble). `chunk`: of a
  /// small block; null for a mapped one.
  void acquire(Block& block, const Chunk* chunk) noexcept;
  /// The block has no users any more.
  void release(const Block& block, const Chunk* chunk) noexcept;
  /// Before the pages of a mapped block or a chunk are unmapped.
  void forget(const Block& block) noexcept;
  void forget(const Chunk& chunk) noexcept;
  /// A forked child has no locked pages.
  void forget_all_in_child(const SmallHeap& heap) noexcept;

  int64_t locked_bytes() const noexcept { return locked_.load(std::memory_order_relaxed); }          // of pages
  int64_t locked_in_use() const noexcept { return locked_in_use_.load(std::memory_order_relaxed); }  // of blocks

 private:
  class ChunkGuard;
  int try_lock(Block& block, const Chunk* chunk) noexcept;  // both return 0 or the error number
  int lock_in_chunk(const Block& block, const Chunk& chunk) noexcept;
  /// Marks a chunk with unused pages as busy and returns it, or null if no chunk has any.
  const Chunk* begin_unlocking(ChunkPages::Set& unused) noexcept;
  int64_t unlock_unused() noexcept;

  GuardedLists& lists_;
  std::atomic<int64_t> locked_{0};
  std::atomic<int64_t> locked_in_use_{0};
};

}  // namespace artifex_devices
