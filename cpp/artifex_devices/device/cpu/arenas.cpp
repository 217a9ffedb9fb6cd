// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/device/cpu/arenas.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>

#include "artifex_devices/base/fork.h"
#include "artifex_devices/base/mutex.h"
#include "artifex_devices/device/cpu/arena_blocks.h"
#include "artifex_devices/topology/system_files.h"

namespace artifex_devices {
namespace {

constinit Mutex<"making of arenas"> g_making;  // the arenas; held during a fork
constinit std::atomic<const std::vector<Arena*>*> g_arenas{nullptr};

class ArenasAtFork final : AtFork {
 public:
  ArenasAtFork() : AtFork(1) {}

 private:
  // The locks of one kind after another, in the order in which others take them.
  void before() override {
    g_making.lock();
    for_each([](ArenaBlocks& blocks) { blocks.before_fork(); });
    for_each([](ArenaBlocks& blocks) { blocks.pages().before_fork(); });
  }
  void in_parent() override {
    for_each([](ArenaBlocks& blocks) { blocks.pages().after_fork(); });
    for_each([](ArenaBlocks& blocks) { ArenaBlocks::unmap(blocks.after_fork_in_parent()); });
    g_making.unlock();
  }
  void in_child() override {
    int64_t missing = 0;
    for_each([](ArenaBlocks& blocks) { blocks.pages().after_fork(); });
    for_each([&](ArenaBlocks& blocks) { missing += blocks.after_fork_in_child(); });
    correct_mapped_in_child(missing);
    g_making.unlock();
  }
  template <class F>
  static void for_each(F f) noexcept {
    const auto* all = g_arenas.load(std::memory_order_acquire);
    if (!all) return;
    for (Arena* each : *all) f(each->blocks());
  }
};
ArenasAtFork g_arenas_at_fork;

}  // namespace

const std::vector<Arena*>& all_arenas() {
  if (const auto* all = g_arenas.load(std::memory_order_acquire)) return *all;
  const std::lock_guard lock(g_making);
  if (const auto* all = g_arenas.load(std::memory_order_acquire)) return *all;
  const std::vector<Arena*>* made = Arena::make_all();
  g_arenas.store(made, std::memory_order_release);
  return *made;
}

int64_t evict_cached(int64_t bound, bool pinned_only) noexcept {
  Releasing releasing;
  MappedBlock* evicted = nullptr;
  int64_t bytes = 0;
  while (Arena::total_cached_bytes() > bound) {
    ArenaBlocks* from = nullptr;
    uint64_t oldest = FreeBlocks::kNone;
    for (Arena* each : all_arenas()) {
      ArenaBlocks& blocks = each->blocks();
      const uint64_t freed_at = blocks.oldest_freed_at();
      if (freed_at >= oldest || (pinned_only && !blocks.is_pinned())) continue;
      from = &blocks;
      oldest = freed_at;
    }
    if (!from) break;
    MappedBlock* block = from->remove_oldest(releasing);
    if (!block) continue;  // another thread took it
    bytes += block->capacity;
    block->next_dropped = evicted;
    evicted = block;
  }
  ArenaBlocks::unmap(evicted);
  return bytes;
}

int64_t drop_cached_for(int64_t bytes, int64_t usable) noexcept {
  const int64_t cached = Arena::total_cached_bytes();
  const int64_t mapped = mapped_bytes();
  if (cached == 0 || mapped - cached > usable - bytes) return 0;  // nothing to drop, or dropping would not help
  // Other memory of this process counts too, including the kernel's pages for it, such as page tables: the limit
  // applies to all of them.
  const int64_t kernels = usable / 64;
  const int64_t excess = std::max(mapped, resident_memory_bytes()) - (usable - kernels - bytes);
  if (excess <= 0) return 0;
  int64_t dropped = evict_cached(cached - excess);
  if (dropped >= excess) return dropped;
  for (Arena* each : all_arenas()) dropped += each->blocks().trim(true);
  return dropped;
}

int64_t Arena::trim_all() {
  int64_t bytes = evict_cached(-1);
  for (Arena* arena : all_arenas()) bytes += arena->blocks().trim(true);
  return bytes;
}

int64_t Arena::total_cached_bytes() noexcept {
  int64_t bytes = 0;
  for (Arena* each : all_arenas()) bytes += each->blocks().cached_bytes();
  return bytes;
}

}  // namespace artifex_devices
