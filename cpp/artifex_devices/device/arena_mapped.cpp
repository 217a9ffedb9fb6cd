// SPDX-License-Identifier: Apache-2.0
#include <type_traits>
#include <utility>

#include "artifex_devices/device/arena_reserve.h"
#include "artifex_devices/device/arena_state.h"

// Blocks of 1 MiB and more, mapped one by one. Free ones of all arenas are on one list, in order of their release.
namespace artifex_devices {
namespace {

constexpr int64_t kHugePage = int64_t{2} << 20;
constexpr int64_t kLargest = int64_t{1} << 47;  // of a user's address space

struct FreeBlocks {
  Mutex<"free blocks"> mutex;
  Block* newest = nullptr;
  Block* oldest = nullptr;
  std::atomic<int64_t> bytes{0};
};

// Blocks may be freed by static destructors of others.
static_assert(std::is_trivially_destructible_v<FreeBlocks>);
constinit FreeBlocks g_free_blocks;

// Whole huge pages where that adds at most a quarter: fresh huge pages cost a fifth of the same bytes in small ones.
int64_t rounded(int64_t bytes, bool huge_pages) noexcept {
  const int64_t huge = (bytes + kHugePage - 1) / kHugePage * kHugePage;
  return huge_pages && huge - bytes <= bytes / 4 ? huge : (std::max<int64_t>(bytes, 1) + kPage - 1) / kPage * kPage;
}

}  // namespace

void Arena::State::unlink_locked(Block* block) noexcept {
  FreeBlocks& list = g_free_blocks;
  (block->previous_ ? block->previous_->next_ : list.newest) = block->next_;
  (block->next_ ? block->next_->previous_ : list.oldest) = block->previous_;
  block->next_ = block->previous_ = nullptr;
  list.bytes.fetch_sub(block->capacity_, std::memory_order_relaxed);
  block->arena_->state_->mapped_cached.fetch_sub(block->capacity_, std::memory_order_relaxed);
}

void Arena::State::unmap_list(Block* first) noexcept {
  while (Block* block = first) {
    first = block->next_;
    State& state = *block->arena_->state_;
    state.forget_lock(block);
    state.unmap(block->data_, block->capacity_);
    BlockOwner::destroy(block);
  }
}

Block* Arena::State::take_mapped(int64_t bytes) {
  if (bytes > kLargest) return nullptr;
  const int64_t wanted = rounded(bytes, arena->is_caching() && arena->kind() != MemoryKind::kUnpinnedHost);
  Block* best = nullptr;
  Block* useless = nullptr;
  if (arena->is_caching()) {
    FreeBlocks& list = g_free_blocks;
    const std::lock_guard lock(list.mutex);
    for (Block* block = list.newest; block; block = block->next_) {
      if (block->arena_ != arena || block->capacity_ < wanted || block->capacity_ > wanted + wanted / 4) continue;
      if (!best || block->capacity_ < best->capacity_) best = block;
      if (best->capacity_ == wanted) break;
    }
    if (best) {
      unlink_locked(best);
      if (!keep_in_children(best->data_, best->capacity_, true)) useless = std::exchange(best, nullptr);
    }
  }
  unmap_list(useless);
  const bool hit = best != nullptr;
  if (!best) {
    best = BlockOwner::make();
    if (!best) return nullptr;
    best->data_ = cut_reserve(wanted);
    if (!best->data_ && !exceeds_memory(wanted)) best->data_ = map(wanted, true);
    if (!best->data_) {
      BlockOwner::destroy(best);
      return nullptr;
    }
    best->capacity_ = wanted;
    best->arena_ = arena;
    poison(best->data_, wanted);
  }
  best->bytes_ = bytes;
  best->to_system_.store(false, std::memory_order_relaxed);
  unpoison(best->data_, bytes);
  const std::lock_guard lock(mutex);
  mapped_in_use.fetch_add(best->capacity_, std::memory_order_relaxed);
  count_taken_locked(best->capacity_, hit);
  return best;
}

void Arena::State::give_mapped(Block* block) noexcept {
  State& state = *block->arena_->state_;
  {
    const std::lock_guard lock(state.mutex);
    state.in_use.store(state.in_use.load(std::memory_order_relaxed) - block->capacity_, std::memory_order_relaxed);
    state.mapped_in_use.fetch_sub(block->capacity_, std::memory_order_relaxed);
  }
  const int64_t bound = cache_bound();
  block->next_ = block->previous_ = nullptr;
  if (block->to_system_.load(std::memory_order_relaxed) || block->capacity_ > bound || !state.arena->is_caching() ||
      state.is_in_reserve(block->data_)) {
    unmap_list(block);
    return;
  }
  Block* evicted = nullptr;
  {
    FreeBlocks& list = g_free_blocks;
    const std::lock_guard lock(list.mutex);
    // Under the lock, so that a fork sees either a block in use or one that its child does not have.
    keep_in_children(block->data_, block->capacity_, false);
    poison(block->data_, block->capacity_);
    block->next_ = list.newest;
    (list.newest ? list.newest->previous_ : list.oldest) = block;
    list.newest = block;
    list.bytes.fetch_add(block->capacity_, std::memory_order_relaxed);
    state.mapped_cached.fetch_add(block->capacity_, std::memory_order_relaxed);
    const int64_t small = total_small_cached();
    while (list.oldest && list.bytes.load(std::memory_order_relaxed) + small > bound) {
      Block* oldest = list.oldest;
      unlink_locked(oldest);
      oldest->next_ = evicted;
      evicted = oldest;
    }
  }
  unmap_list(evicted);
}

int64_t Arena::State::trim_mapped(bool pinned_only) noexcept {
  Block* evicted = nullptr;
  int64_t bytes = 0;
  {
    FreeBlocks& list = g_free_blocks;
    const std::lock_guard lock(list.mutex);
    for (Block* block = list.oldest; block;) {
      Block* each = std::exchange(block, block->previous_);
      if (pinned_only && !each->arena_->state_->pinned) continue;
      bytes += each->capacity_;
      unlink_locked(each);
      each->next_ = evicted;
      evicted = each;
    }
  }
  unmap_list(evicted);
  return bytes;
}

int64_t Arena::State::total_in_use() noexcept {
  int64_t bytes = 0;
  for (const Arena* each : all_arenas()) {
    bytes += each->state_->in_use.load(std::memory_order_relaxed) +
             each->state_->reserved_free.load(std::memory_order_relaxed);
  }
  return bytes;
}

int64_t Arena::State::total_small_cached() noexcept {
  int64_t bytes = 0;
  for (const Arena* each : all_arenas()) bytes += each->state_->cached.load(std::memory_order_relaxed);
  return bytes;
}

int64_t Arena::total_cached_bytes() noexcept {
  return State::total_small_cached() + g_free_blocks.bytes.load(std::memory_order_relaxed);
}

void Arena::State::before_fork() noexcept {
  lock_making();
  g_free_blocks.mutex.lock();
  if (const auto* all = arenas_if_made()) {
    for (const Arena* each : *all) each->state_->mutex.lock();
    for (const Arena* each : *all) each->state_->reserves_mutex.lock();
  }
}

void Arena::State::after_fork(bool in_child) noexcept {
  FreeBlocks& list = g_free_blocks;
  if (in_child) {
    // The child's address space lacks the free blocks; something else may come to lie there.
    while (Block* block = list.oldest) {
      unlink_locked(block);
      unpoison(block->data_, block->capacity_);
      BlockOwner::destroy(block);
    }
  }
  if (const auto* all = arenas_if_made()) {
    for (const Arena* each : *all) {
      if (in_child) each->state_->forget_locks_in_child();
      each->state_->reserves_mutex.unlock();
      each->state_->mutex.unlock();
    }
  }
  list.mutex.unlock();
  unlock_making();
}

}  // namespace artifex_devices
