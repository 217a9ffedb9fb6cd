// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "artifex_devices/device/cpu/arena.h"
#include "artifex_devices/device/cpu/arena_lists.h"
#include "artifex_devices/device/cpu/page_budget.h"
#include "artifex_devices/device/cpu/page_locks.h"
#include "artifex_devices/device/cpu/page_source.h"

namespace artifex_devices {

class ArenaBlocks;

/// A block that is mapped separately.
struct MappedBlock : Block, FreeBlock {
  ArenaBlocks* owner = nullptr;
  MappedBlock* next_dropped = nullptr;
  bool is_in_child = true;  // a child that is being forked inherits its pages
};

/// Allocates and caches the blocks of one arena. Blocks below 1 MiB come from a heap; larger blocks (and all blocks of
/// an arena without a cache) are mapped separately. Thread-safe.
class ArenaBlocks {
 public:
  explicit ArenaBlocks(Arena& arena);

  /// Returns a block without users, or null if the system has no memory.
  Block* take(int64_t bytes) noexcept { return is_small(bytes) ? take_small(bytes) : take_mapped(bytes); }
  /// For pinned memory: before a taken block is used.
  void lock_pages(Block* block) noexcept;
  void give(Block* block) noexcept;

  MemorySpaceStats stats();
  PageSource& pages() noexcept { return pages_; }
  bool is_pinned() const noexcept { return locks_.has_value(); }

  // The cache; the first two may be called at any time.
  int64_t cached_bytes() const noexcept {
    return lists_.unlocked().small.cached_bytes() + lists_.unlocked().mapped.bytes();
  }
  uint64_t oldest_freed_at() const noexcept { return lists_.unlocked().mapped.oldest_freed_at(); }
  /// Removes and returns the least recently freed mapped block, or returns null.
  MappedBlock* remove_oldest(Releasing& releasing) noexcept;
  /// Unmaps a list of removed blocks, also of several arenas.
  static void unmap(MappedBlock* first) noexcept;
  /// Unmaps chunks without a block in use (the current one only on request); returns the bytes of their free blocks.
  int64_t trim(bool current_too) noexcept;

  // Around a fork, whose child inherits the blocks in use and the chunks, but no free mapped block.
  void before_fork() noexcept;
  /// Returns the blocks that later children would not inherit; unmap them.
  MappedBlock* after_fork_in_parent() noexcept;
  /// Returns the bytes that were not inherited.
  int64_t after_fork_in_child() noexcept;

 private:
  bool is_small(int64_t bytes) const noexcept { return bytes < kMappedFrom && arena_.is_caching(); }
  Block* take_small(int64_t bytes) noexcept;
  SmallBlock* cut_small(int size_class, int64_t bytes) noexcept;
  void give_small(SmallBlock* block) noexcept;
  Chunk* map_chunk(bool huge) noexcept;
  void unmap_chunks(Chunk* first) noexcept;

  Block* take_mapped(int64_t bytes) noexcept;
  MappedBlock* reuse_mapped(int64_t wanted) noexcept;
  MappedBlock* map_block(int64_t wanted) noexcept;
  void give_mapped(MappedBlock* block) noexcept;

  Arena& arena_;
  PageSource pages_;
  GuardedLists lists_;
  std::optional<PageLocks> locks_;               // of pinned memory
  std::optional<GuardedLists::Locked> at_fork_;  // while this thread forks
};

}  // namespace artifex_devices
