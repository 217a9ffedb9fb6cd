// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "artifex_devices/device/block.h"
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
};

/// The memory of one NUMA node with a caching allocator. Belongs to the process, never dies; clients share it.
///
/// Small sizes come from size classes cut out of 2 MiB chunks, at 64-byte alignment; sizes of 1 MiB and more are
/// mapped on their own, aligned to 2 MiB and advised to be huge pages, first touched by whoever writes them first.
/// Freed blocks are kept up to `config().cache_bytes` over all arenas (least recently freed go first), and dropped on a
/// failed allocation and by `trim`. Free mapped blocks are MADV_DONTFORK, live ones are not. Locks are taken around
/// fork, so that the child can allocate. Thread-safe.
class Arena {
 public:
  /// The arena of NUMA node `logical_index` of the live machine; one that the machine does not have is folded onto
  /// those that it has.
  static Arena& of_node(int logical_index);

  /// Memory of `bytes` (0 gives a valid block of no size), 64-byte aligned, not cleared. Throws OutOfMemory, with what
  /// was asked for, in use and cached here, when the system has no more even after the caches are dropped.
  BlockRef allocate(int64_t bytes);

  ArenaStats stats() const;
  int node() const noexcept { return node_; }

  /// Gives the cached blocks of all arenas back to the system; returns their bytes. Small ones whose chunk has blocks
  /// in use stay.
  static int64_t trim_all();
  static int64_t total_cached_bytes() noexcept;

  struct State;

 private:
  friend class BlockRef;
  explicit Arena(int node);
  void release(Block* block) noexcept;

  int node_;
  std::unique_ptr<State> state_;
};

}  // namespace artifex_devices
