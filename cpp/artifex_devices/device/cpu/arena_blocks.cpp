// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/device/cpu/arena_blocks.h"

#include <algorithm>
#include <atomic>
#include <new>
#include <utility>

#include "artifex_devices/device/cpu/arenas.h"

namespace artifex_devices {
namespace {

constinit std::atomic<uint64_t> g_releases{0};

// Whole huge pages if that adds at most a quarter: new huge pages cost a fifth of the same bytes in small pages.
int64_t rounded(int64_t bytes, bool huge_pages) noexcept {
  const int64_t huge = (bytes + kHugePage - 1) / kHugePage * kHugePage;
  if (huge_pages && huge - bytes <= bytes / 4) return huge;
  const int64_t page = page_bytes();
  return (std::max<int64_t>(bytes, 1) + page - 1) / page * page;
}

}  // namespace

ArenaBlocks::ArenaBlocks(Arena& arena)
    : arena_(arena), pages_(arena.node(), arena.kind() == MemoryKind::kUnpinnedHost), lists_(&arena) {
  if (arena.kind() == MemoryKind::kPinnedHost) locks_.emplace(lists_);
}

void ArenaBlocks::lock_pages(Block* block) noexcept {
  locks_->acquire(*block, is_small(block->bytes()) ? static_cast<SmallBlock*>(block)->chunk : nullptr);
}

void ArenaBlocks::give(Block* block) noexcept {
  if (is_small(block->bytes())) {
    give_small(static_cast<SmallBlock*>(block));
  } else {
    give_mapped(static_cast<MappedBlock*>(block));
  }
}

Block* ArenaBlocks::take_small(int64_t bytes) noexcept {
  const int size_class = class_of(bytes);
  {
    const auto lists = lists_.lock();
    if (SmallBlock* block = lists->small.reuse(size_class, bytes)) {
      lists->counts.add(block->capacity_, true);
      return block;
    }
  }
  return cut_small(size_class, bytes);
}

// Chunks and headers are allocated without the lock when they turn out to be needed; then the loop repeats.
SmallBlock* ArenaBlocks::cut_small(int size_class, int64_t bytes) noexcept {
  Chunk* chunk = nullptr;
  SmallBlock* headers = nullptr;
  SmallBlock* block = nullptr;
  for (bool is_short = false; !block && !is_short;) {
    bool needs_headers = false;
    bool is_first = false;
    {
      const auto lists = lists_.lock();
      SmallHeap& heap = lists->small;
      if (headers) heap.add_headers(std::exchange(headers, nullptr));
      block = heap.reuse(size_class, bytes);  // another thread may have freed one
      const bool is_hit = block != nullptr;
      needs_headers = heap.needs_headers();
      if (!block && !needs_headers) block = heap.cut(size_class, bytes, chunk);
      if (block) {
        lists->counts.add(block->capacity_, is_hit);
        break;
      }
      is_first = heap.num_chunks() == 0;
    }
    if (needs_headers) {
      headers = SmallHeap::new_headers();
      is_short = headers == nullptr;
    } else {
      chunk = map_chunk(!is_first);  // a process with a few small arrays should not map 2 MiB at once
      is_short = chunk == nullptr;
    }
  }
  if (chunk) unmap_chunks(chunk);  // another thread was first
  return block;
}

void ArenaBlocks::give_small(SmallBlock* block) noexcept {
  if (locks_) locks_->release(*block, block->chunk);
  poison(block->data_, block->capacity_);
  {
    const auto lists = lists_.lock();
    lists->counts.in_use -= block->capacity_;
    if (!lists->small.give(block) || lists->small.cached_bytes() <= cache_bound()) return;
  }
  trim(false);
}

Chunk* ArenaBlocks::map_chunk(bool huge) noexcept {
  std::unique_ptr<Chunk> chunk(new (std::nothrow) Chunk());
  if (!chunk) return nullptr;
  if (locks_) {
    chunk->pages.reset(new (std::nothrow) ChunkPages());
    if (!chunk->pages) return nullptr;
  }
  chunk->data = pages_.take(kChunkBytes, huge);
  if (!chunk->data) return nullptr;
  poison(chunk->data, kChunkBytes);
  return chunk.release();
}

void ArenaBlocks::unmap_chunks(Chunk* first) noexcept {
  while (Chunk* chunk = first) {
    first = chunk->next;
    if (locks_) locks_->forget(*chunk);
    pages_.give(chunk->data, kChunkBytes);
    delete chunk;
  }
}

int64_t ArenaBlocks::trim(bool current_too) noexcept {
  Releasing releasing;
  int64_t bytes = 0;
  Chunk* removed = nullptr;
  {
    const auto lists = lists_.lock();
    if (!lists->small.has_removable(current_too)) return 0;
    releasing.begin();
    removed = lists->small.remove_empty(current_too, bytes);
  }
  unmap_chunks(removed);
  return bytes;
}

Block* ArenaBlocks::take_mapped(int64_t bytes) noexcept {
  if (bytes > kAddressSpace) return nullptr;
  const bool caching = arena_.is_caching();
  const int64_t wanted = rounded(bytes, caching && arena_.kind() != MemoryKind::kUnpinnedHost);
  MappedBlock* block = caching ? reuse_mapped(wanted) : nullptr;
  if (!block) block = map_block(wanted);
  if (!block) return nullptr;
  block->bytes_ = bytes;
  block->to_system_.store(false, std::memory_order_relaxed);
  unpoison(block->data_, bytes);
  return block;
}

MappedBlock* ArenaBlocks::reuse_mapped(int64_t wanted) noexcept {
  const auto lists = lists_.lock();
  auto* block = static_cast<MappedBlock*>(lists->mapped.best_fit(wanted, wanted + wanted / 4));
  if (!block) return nullptr;
  lists->mapped.remove(*block);
  lists->counts.mapped_in_use += block->capacity_;
  lists->counts.add(block->capacity_, true);
  return block;
}

MappedBlock* ArenaBlocks::map_block(int64_t wanted) noexcept {
  auto* block = new (std::nothrow) MappedBlock();
  if (!block) return nullptr;
  block->data_ = pages_.take(wanted, true);
  if (!block->data_) {
    delete block;
    return nullptr;
  }
  block->space_ = &arena_;
  block->owner = this;
  block->capacity_ = block->capacity = wanted;
  poison(block->data_, wanted);
  const auto lists = lists_.lock();
  lists->counts.mapped_in_use += wanted;
  lists->counts.add(wanted, false);
  return block;
}

void ArenaBlocks::give_mapped(MappedBlock* block) noexcept {
  if (locks_) locks_->release(*block, nullptr);
  const int64_t bound = cache_bound();
  bool is_cached = arena_.is_caching() && !block->to_system_.load(std::memory_order_relaxed) &&
                   block->capacity_ <= bound && !pages_.is_preallocated(block->data_);
  if (is_cached && Arena::total_cached_bytes() + block->capacity_ > firm_cache_bound()) {
    is_cached = offer_pages(block->data_, block->capacity_);
  }
  Releasing releasing;
  if (is_cached) {
    poison(block->data_, block->capacity_);
    block->freed_at = g_releases.fetch_add(1, std::memory_order_relaxed);
  } else {
    releasing.begin();
  }
  {
    const auto lists = lists_.lock();
    lists->counts.in_use -= block->capacity_;
    lists->counts.mapped_in_use -= block->capacity_;
    if (is_cached) lists->mapped.add(*block);
  }
  if (is_cached) {
    evict_cached(bound);
  } else {
    block->next_dropped = nullptr;
    unmap(block);
  }
}

MappedBlock* ArenaBlocks::remove_oldest(Releasing& releasing) noexcept {
  const auto lists = lists_.lock();
  auto* block = static_cast<MappedBlock*>(lists->mapped.oldest());
  if (!block) return nullptr;
  releasing.begin();
  lists->mapped.remove(*block);
  return block;
}

void ArenaBlocks::unmap(MappedBlock* first) noexcept {
  while (MappedBlock* block = first) {
    first = block->next_dropped;
    if (block->owner->locks_) block->owner->locks_->forget(*block);
    block->owner->pages_.give(block->data_, block->capacity_);
    delete block;
  }
}

MemorySpaceStats ArenaBlocks::stats() {
  const PageSource::Preallocated preallocated = pages_.preallocated();
  const auto lists = lists_.lock();
  const BlockCounts& counts = lists->counts;
  return {
      .bytes_in_use = counts.in_use,
      .bytes_cached = cached_bytes(),
      .bytes_mapped = lists->small.num_chunks() * kChunkBytes + counts.mapped_in_use + lists->mapped.bytes() +
                      preallocated.free_bytes,
      .peak_bytes_in_use = counts.peak_in_use,
      .num_allocs = counts.num_allocs,
      .cache_hits = counts.cache_hits,
      .bytes_locked = locks_ ? locks_->locked_bytes() : 0,
      .bytes_not_locked = locks_ ? std::max<int64_t>(counts.in_use - locks_->locked_in_use(), 0) : 0,
      .bytes_preallocated = preallocated.bytes,
  };
}

void ArenaBlocks::before_fork() noexcept {
  at_fork_.emplace(lists_);
  for (FreeBlock* free = (*at_fork_)->mapped.oldest(); free; free = free->newer) {
    auto& block = static_cast<MappedBlock&>(*free);
    block.is_in_child = !keep_in_children(block.data_, block.capacity_, false);
  }
}

MappedBlock* ArenaBlocks::after_fork_in_parent() noexcept {
  MappedBlock* dropped = nullptr;
  FreeBlocks& cache = (*at_fork_)->mapped;
  for (FreeBlock* free = cache.oldest(); free;) {
    auto& block = static_cast<MappedBlock&>(*std::exchange(free, free->newer));
    if (block.is_in_child || keep_in_children(block.data_, block.capacity_, true)) continue;
    cache.remove(block);
    block.next_dropped = std::exchange(dropped, &block);
  }
  at_fork_.reset();
  return dropped;
}

int64_t ArenaBlocks::after_fork_in_child() noexcept {
  const int64_t missing = (*at_fork_)->mapped.bytes();
  while (FreeBlock* free = (*at_fork_)->mapped.oldest()) {
    auto& block = static_cast<MappedBlock&>(*free);
    (*at_fork_)->mapped.remove(block);
    if (block.is_in_child) {
      unmap_pages(block.data_, block.capacity_);
    } else {
      unpoison(block.data_, block.capacity_);  // other memory may be mapped there later
    }
    delete &block;
  }
  if (locks_) locks_->forget_all_in_child((*at_fork_)->small);
  at_fork_.reset();
  return missing;
}

}  // namespace artifex_devices
