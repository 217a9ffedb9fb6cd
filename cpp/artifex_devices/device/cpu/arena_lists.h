// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "artifex_devices/base/guarded.h"
#include "artifex_devices/base/mutex.h"
#include "artifex_devices/device/cpu/free_blocks.h"
#include "artifex_devices/device/cpu/short_lock.h"
#include "artifex_devices/device/cpu/small_heap.h"

namespace artifex_devices {

/// The blocks of one arena that have users, in bytes of capacity.
struct BlockCounts {
  int64_t in_use = 0;
  int64_t mapped_in_use = 0;  // part of in_use: blocks that are mapped separately
  int64_t peak_in_use = 0;
  int64_t num_allocs = 0;
  int64_t cache_hits = 0;

  void add(int64_t capacity, bool is_hit) noexcept {
    in_use += capacity;
    peak_in_use = std::max(peak_in_use, in_use);
    ++num_allocs;
    if (is_hit) ++cache_hits;
  }
};

/// Data that the lock of an arena guards. No system call is made under it, except during a fork.
struct ArenaLists {
  explicit ArenaLists(MemorySpace* space) : small(space) {}
  SmallHeap small;
  FreeBlocks mapped;
  BlockCounts counts;
};
using GuardedLists = Guarded<ArenaLists, NamedLock<ShortLock, "arena">>;

}  // namespace artifex_devices
