// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "artifex_devices/device/block.h"
#include "artifex_devices/device/memory_kind.h"
#include "artifex_devices/topology/machine.h"

namespace artifex_devices {

/// Physical state of one arena, in bytes.
struct ArenaStats {
  int64_t bytes_in_use = 0;  // blocks with users, capacity
  int64_t bytes_cached = 0;  // blocks kept for reuse
  int64_t bytes_mapped = 0;  // taken from the system: in use + cached + chunk remainders
  int64_t peak_bytes_in_use = 0;
  int64_t num_allocs = 0;
  int64_t cache_hits = 0;
  int64_t bytes_locked = 0;        // whole pages in RAM for good, of blocks in use and cached ones
  int64_t bytes_not_locked = 0;    // in use in a pinned arena, but the system would not lock them
  int64_t bytes_preallocated = 0;  // taken up front; part of bytes_mapped
};

/// The memory of one kind near one NUMA node, or of all nodes in turn, with a caching allocator. Belongs to the
/// process, never dies; clients share it.
///
/// Small sizes come from size classes cut out of 2 MiB chunks, at 64-byte alignment; sizes of 1 MiB and more are
/// mapped on their own, aligned to 2 MiB and advised to be huge pages, first touched by whoever writes them first.
/// Freed blocks are kept up to `config().cache_bytes` over all arenas. The least recently freed are dropped first, also
/// where a limit of memory would be passed or an allocation fails. A forked child does not get free mapped blocks. No
/// lock is held over a system call but fork, whose child can allocate (docs/decisions/0022). Thread-safe.
///
/// Kinds: pages of `device` and `pinned_host` are bound to the node where there are several; those of `unpinned_host`
/// are neither bound nor advised. Pages of `pinned_host` are locked, and stay so while cached; where the system locks
/// no more (RLIMIT_MEMLOCK) the block is there without the lock, which Block::is_locked, the stats and
/// page_lock_trouble say. Its next user asks again. An arena without cache maps every block by itself and unmaps it at
/// once.
class Arena {
 public:
  /// The arena of NUMA node `logical_index` of the live machine; one that the machine does not have is folded onto
  /// those that it has.
  static Arena& of_node(int logical_index, MemoryKind kind = MemoryKind::kDevice, bool caching = true);
  /// The one whose pages come from all nodes in turn, for big results that devices of several nodes read. Of kind
  /// device; its node() is kAllNodes.
  static Arena& interleaved(bool caching = true);
  static constexpr int kAllNodes = -2;

  /// Memory of `bytes` (0 gives a valid block of no size), 64-byte aligned, not cleared. Throws OutOfMemory, with what
  /// was asked for, in use and cached here, when the system has no more even after the caches are dropped.
  BlockRef allocate(int64_t bytes);

  ArenaStats stats() const;
  int node() const noexcept { return node_; }
  MemoryKind kind() const noexcept { return kind_; }
  bool is_caching() const noexcept { return caching_; }

  /// Takes `bytes` (rounded up to 2 MiB) from the system and touches them; blocks of 1 MiB and more come from there
  /// first. They go back to the system when the result is dropped and nobody uses them. Throws OutOfMemory when so much
  /// is not free, Interrupted.
  std::shared_ptr<void> preallocate(int64_t bytes, std::string_view operation);

  /// Gives the cached blocks of all arenas back to the system; returns their bytes. Small ones whose chunk has blocks
  /// in use stay.
  static int64_t trim_all();
  static int64_t total_cached_bytes() noexcept;

  struct State;

 private:
  friend class BlockRef;
  Arena(int node, MemoryKind kind, bool caching);
  void release(Block* block) noexcept;

  int node_;
  MemoryKind kind_;
  bool caching_;
  std::unique_ptr<State> state_;
};

/// What went wrong when pages were to be locked for the first time in this process, with the limit and how to raise it;
/// empty when nothing did.
std::string page_lock_trouble();
/// Whether there is such a text; a cheap question.
bool has_page_lock_trouble() noexcept;
/// RLIMIT_MEMLOCK in bytes, -1 for none. Privileged processes (CAP_IPC_LOCK) are not held to it.
int64_t page_lock_limit() noexcept;

}  // namespace artifex_devices
