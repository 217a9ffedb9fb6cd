// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <new>

#include "artifex_devices/device/cpu/arena_state.h"
#include "artifex_devices/topology/system_files.h"

// Blocks of 1 MiB and more, each mapped separately.
namespace artifex_devices {
namespace {

constexpr int64_t kHugePage = int64_t{2} << 20;
constexpr int64_t kLargest = int64_t{1} << 47;  // user address space

constinit std::atomic<uint64_t> g_releases{0};

// Whole huge pages if that adds at most a quarter: new huge pages cost a fifth of the same bytes in small pages.
int64_t rounded(int64_t bytes, bool huge_pages) noexcept {
  const int64_t huge = (bytes + kHugePage - 1) / kHugePage * kHugePage;
  return huge_pages && huge - bytes <= bytes / 4 ? huge : (std::max<int64_t>(bytes, 1) + kPage - 1) / kPage * kPage;
}

}  // namespace

void Arena::State::use_mapped_locked(MappedBlock& block, bool hit) noexcept {
  mapped_in_use.fetch_add(block.capacity_, std::memory_order_relaxed);
  count_taken_locked(block.capacity_, hit);
}

void Arena::State::remove_free_locked(MappedBlock& block) noexcept {
  free_mapped.remove(block);
  mapped_cached.fetch_sub(block.capacity_, std::memory_order_relaxed);
}

Arena::State::MappedBlock* Arena::State::take_free(int64_t wanted) noexcept {
  const std::lock_guard lock(mutex);
  auto* block = static_cast<MappedBlock*>(free_mapped.best_fit(wanted, wanted + wanted / 4));
  if (!block) return nullptr;
  remove_free_locked(*block);
  use_mapped_locked(*block, true);
  return block;
}

Arena::State::MappedBlock* Arena::State::map_block(int64_t wanted) noexcept {
  auto* block = new (std::nothrow) MappedBlock();
  if (!block) return nullptr;
  block->data_ = map(wanted, true);
  if (!block->data_) {
    delete block;
    return nullptr;
  }
  block->space_ = arena;
  block->capacity_ = block->capacity = wanted;
  poison(block->data_, wanted);
  const std::lock_guard lock(mutex);
  use_mapped_locked(*block, false);
  return block;
}

Block* Arena::State::take_mapped(int64_t bytes) {
  if (bytes > kLargest) return nullptr;
  const bool caching = arena->is_caching();
  const int64_t wanted = rounded(bytes, caching && arena->kind() != MemoryKind::kUnpinnedHost);
  MappedBlock* block = caching ? take_free(wanted) : nullptr;
  if (!block) block = map_block(wanted);
  if (!block) return nullptr;
  block->bytes_ = bytes;
  block->to_system_.store(false, std::memory_order_relaxed);
  unpoison(block->data_, bytes);
  return block;
}

void Arena::State::give_mapped(Block* freed) noexcept {
  auto* block = static_cast<MappedBlock*>(freed);
  const int64_t bound = cache_bound();
  bool is_cached = arena->is_caching() && !block->to_system_.load(std::memory_order_relaxed) &&
                   block->capacity_ <= bound && !is_in_reserve(block->data_);
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
    const std::lock_guard lock(mutex);
    in_use.store(in_use.load(std::memory_order_relaxed) - block->capacity_, std::memory_order_relaxed);
    mapped_in_use.fetch_sub(block->capacity_, std::memory_order_relaxed);
    if (is_cached) {
      free_mapped.add(*block);
      mapped_cached.fetch_add(block->capacity_, std::memory_order_relaxed);
    }
  }
  if (is_cached) {
    evict(bound);
  } else {
    block->next_dropped = nullptr;
    unmap_list(block);
  }
}

void Arena::State::unmap_list(MappedBlock* first) noexcept {
  while (MappedBlock* block = first) {
    first = block->next_dropped;
    State& state = *static_cast<Arena*>(block->space_)->state_;
    state.forget_lock(block);
    state.unmap(block->data_, block->capacity_);
    delete block;
  }
}

int64_t Arena::State::evict(int64_t bound, bool pinned_only) noexcept {
  Releasing releasing;
  MappedBlock* evicted = nullptr;
  int64_t bytes = 0;
  while (Arena::total_cached_bytes() > bound) {
    State* state = nullptr;
    uint64_t oldest = FreeBlocks::kNone;
    for (const Arena* each : all_arenas()) {
      const uint64_t freed_at = each->state_->free_mapped.oldest_freed_at();
      if (freed_at >= oldest || (pinned_only && !each->state_->pinned)) continue;
      state = each->state_.get();
      oldest = freed_at;
    }
    if (!state) break;
    const std::lock_guard lock(state->mutex);
    auto* block = static_cast<MappedBlock*>(state->free_mapped.oldest());
    if (!block) continue;  // another thread took it
    releasing.begin();
    state->remove_free_locked(*block);
    bytes += block->capacity_;
    block->next_dropped = evicted;
    evicted = block;
  }
  unmap_list(evicted);
  return bytes;
}

int64_t Arena::State::drop_cached_for(int64_t bytes, int64_t usable) noexcept {
  const int64_t cached = Arena::total_cached_bytes();
  const int64_t mapped = mapped_bytes();
  if (cached == 0 || mapped - cached > usable - bytes) return 0;  // nothing to drop, or dropping would not help
  // Other memory of this process counts too, including the kernel's pages for it, such as page tables: the limit
  // applies to all of them.
  const int64_t kernels = usable / 64;
  const int64_t excess = std::max(mapped, resident_memory_bytes()) - (usable - kernels - bytes);
  if (excess <= 0) return 0;
  int64_t dropped = evict(cached - excess);
  if (dropped >= excess) return dropped;
  for (const Arena* each : all_arenas()) dropped += each->state_->trim_chunks(true);
  return dropped;
}

int64_t Arena::total_cached_bytes() noexcept {
  int64_t bytes = 0;
  for (const Arena* each : all_arenas()) {
    bytes += each->state_->cached.load(std::memory_order_relaxed) +
             each->state_->mapped_cached.load(std::memory_order_relaxed);
  }
  return bytes;
}

}  // namespace artifex_devices
