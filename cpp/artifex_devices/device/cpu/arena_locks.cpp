// SPDX-License-Identifier: Apache-2.0
// The part of Arena that locks pages in RAM, counts them and reports failures.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>

#include "artifex_devices/base/error.h"
#include "artifex_devices/device/cpu/arena_state.h"

namespace artifex_devices {
namespace {

// The first failure of this process. Trivially destructible, read and written without a lock.
struct Trouble {
  std::atomic<int> error{0};
  std::atomic<int64_t> bytes{0};
  std::atomic<int64_t> locked{0};
};
constinit Trouble g_trouble;

int64_t locked_in_all() noexcept {
  int64_t bytes = 0;
  if (const auto* all = Arena::State::arenas_if_made()) {
    for (const Arena* each : *all) bytes += each->stats().bytes_locked;
  }
  return bytes;
}

/// Returns the first page and the one after the last.
std::pair<size_t, size_t> pages_of(const ArenaChunk& chunk, const std::byte* data, int64_t bytes) noexcept {
  const int64_t begin = data - chunk.data;
  return {static_cast<size_t>(begin / kPage), static_cast<size_t>((begin + bytes - 1) / kPage + 1)};
}

void note_trouble(int error, int64_t bytes) noexcept {
  if (g_trouble.error.load(std::memory_order_relaxed) != 0) return;
  g_trouble.bytes.store(bytes, std::memory_order_relaxed);
  g_trouble.locked.store(locked_in_all(), std::memory_order_relaxed);
  g_trouble.error.store(error, std::memory_order_release);
}

}  // namespace

bool has_page_lock_trouble() noexcept { return g_trouble.error.load(std::memory_order_acquire) != 0; }

std::string page_lock_trouble() {
  const int error = g_trouble.error.load(std::memory_order_acquire);
  if (error == 0) return {};
  const int64_t limit = page_lock_limit();
  return fmt::format(
      "pinned_host: {} bytes could not be locked in RAM ({}); this process may lock {} (RLIMIT_MEMLOCK) and had {} "
      "bytes locked; the rest is placed in pages that are not pinned; raise the limit, say by `ulimit -l unlimited`, "
      "or place less in pinned_host; Memory.stats() and Array.describe() report locked bytes",
      g_trouble.bytes.load(std::memory_order_relaxed), std::strerror(error),
      limit < 0 ? "any number of bytes" : fmt::format("{} bytes", limit),
      g_trouble.locked.load(std::memory_order_relaxed));
}

void Arena::State::count_users_locked(const Block* block, int by) noexcept {
  const auto* chunk = static_cast<const ArenaChunk*>(block->chunk_);
  const auto [first, end] = pages_of(*chunk, block->data_, block->capacity_);
  for (size_t page = first; page < end; ++page) {
    chunk->locks->users[page] = static_cast<uint16_t>(chunk->locks->users[page] + by);
  }
}

// Held while pages of a chunk are locked or unlocked. Other threads wait for the chunk, not for the arena's lock.
class PageTurn {
 public:
  /// Waits until no other thread holds it.
  PageTurn(Arena::State& state, PageLocks& pages) noexcept : state_(state), pages_(pages) {
    while (!begin()) std::this_thread::yield();
  }
  /// It is already held.
  PageTurn(Arena::State& state, PageLocks& pages, std::adopt_lock_t) noexcept : state_(state), pages_(pages) {}
  ~PageTurn() {
    const std::lock_guard lock(state_.mutex);
    pages_.is_busy = false;
  }
  PageTurn(const PageTurn&) = delete;
  PageTurn& operator=(const PageTurn&) = delete;

 private:
  bool begin() noexcept {
    const std::lock_guard lock(state_.mutex);
    return !std::exchange(pages_.is_busy, true);
  }

  Arena::State& state_;
  PageLocks& pages_;
};

int Arena::State::lock_small(Block* block) noexcept {
  const auto* chunk = static_cast<const ArenaChunk*>(block->chunk_);
  const PageTurn turn(*this, *chunk->locks);
  auto& is_locked = chunk->locks->locked;
  const auto [first, end] = pages_of(*chunk, block->data_, block->capacity_);
  for (size_t page = first; page < end; ++page) {
    if (is_locked[page]) continue;
    const size_t begin = page;
    while (page < end && !is_locked[page]) ++page;
    const auto bytes = static_cast<int64_t>(page - begin) * kPage;
    if (const int error = lock_pages(chunk->data + static_cast<int64_t>(begin) * kPage, bytes)) return error;
    for (size_t done = begin; done < page; ++done) is_locked[done] = true;
    locked.fetch_add(bytes, std::memory_order_relaxed);
  }
  return 0;
}

ArenaChunk* Arena::State::begin_unlocking(std::bitset<PageLocks::kPages>& unused) noexcept {
  const std::lock_guard lock(mutex);
  for (ArenaChunk* chunk = chunks; chunk; chunk = chunk->next) {
    PageLocks& pages = *chunk->locks;
    if (pages.is_busy) continue;
    unused = pages.locked;
    for (size_t page = 0; page < PageLocks::kPages; ++page) {
      if (pages.users[page] > 0) unused[page] = false;
    }
    if (unused.none()) continue;
    pages.is_busy = true;
    return chunk;
  }
  return nullptr;
}

int64_t Arena::State::unlock_unused_pages() noexcept {
  int64_t bytes = 0;
  std::bitset<PageLocks::kPages> unused;
  while (const ArenaChunk* chunk = begin_unlocking(unused)) {
    const PageTurn turn(*this, *chunk->locks, std::adopt_lock);  // new users of these pages wait for its end
    for (size_t page = 0; page < PageLocks::kPages; ++page) {
      if (unused[page]) unlock_pages(chunk->data + static_cast<int64_t>(page) * kPage, kPage);
    }
    chunk->locks->locked &= ~unused;
    bytes += static_cast<int64_t>(unused.count()) * kPage;
  }
  locked.fetch_sub(bytes, std::memory_order_relaxed);
  return bytes;
}

int Arena::State::try_lock(Block* block) noexcept {
  if (block->size_class_ >= 0) {
    if (const int error = lock_small(block)) return error;
  } else if (!block->is_locked()) {
    if (const int error = lock_pages(block->data_, block->capacity_)) return error;
    locked.fetch_add(block->capacity_, std::memory_order_relaxed);
  }
  block->lock_generation_ = fork_generation();
  return 0;
}

void Arena::State::lock_pages_of(Block* block) noexcept {
  if (block->size_class_ >= 0) {
    const std::lock_guard lock(mutex);
    count_users_locked(block, 1);
    block->lock_generation_ = -1;
  }
  int error = try_lock(block);
  // Cached blocks keep their locks until others need them.
  if (error != 0 && evict(-1, true) + unlock_unused_pages() > 0) error = try_lock(block);
  if (error == 0) {
    locked_in_use.fetch_add(block->capacity_, std::memory_order_relaxed);
  } else {
    note_trouble(error, block->capacity_);
  }
}

void Arena::State::release_pages(Block* block) noexcept {
  if (block->is_locked()) locked_in_use.fetch_sub(block->capacity_, std::memory_order_relaxed);
  if (block->size_class_ < 0) return;
  const std::lock_guard lock(mutex);
  count_users_locked(block, -1);
}

void Arena::State::forget_lock(const Block* block) noexcept {
  if (pinned && block->is_locked()) locked.fetch_sub(block->capacity_, std::memory_order_relaxed);
}

void Arena::State::forget_lock_of_chunk(const ArenaChunk& chunk) noexcept {
  if (!chunk.locks) return;
  locked.fetch_sub(static_cast<int64_t>(chunk.locks->locked.count()) * kPage, std::memory_order_relaxed);
}

void Arena::State::forget_locks_in_child() noexcept {
  if (!pinned) return;
  g_trouble.error.store(0, std::memory_order_relaxed);
  for (ArenaChunk* chunk = chunks; chunk; chunk = chunk->next) {
    chunk->locks->locked.reset();
    chunk->locks->is_busy = false;  // that thread exists only in the parent
  }
  locked.store(0, std::memory_order_relaxed);
  locked_in_use.store(0, std::memory_order_relaxed);
}

}  // namespace artifex_devices
