// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/device/cpu/page_locks.h"

#include <fmt/format.h>

#include <cstring>
#include <mutex>
#include <thread>
#include <utility>

#include "artifex_devices/device/cpu/arena.h"
#include "artifex_devices/device/cpu/arenas.h"

namespace artifex_devices {
namespace {

// The first failure of this process. Trivially destructible, read and written without a lock.
struct Trouble {
  std::atomic<int> error{0};
  std::atomic<int64_t> bytes{0};
  std::atomic<int64_t> locked{0};
};
constinit Trouble g_trouble;

void note_trouble(int error, int64_t bytes) noexcept {
  if (g_trouble.error.load(std::memory_order_relaxed) != 0) return;
  int64_t locked = 0;
  for (const Arena* each : all_arenas()) locked += each->stats().bytes_locked;
  g_trouble.bytes.store(bytes, std::memory_order_relaxed);
  g_trouble.locked.store(locked, std::memory_order_relaxed);
  g_trouble.error.store(error, std::memory_order_release);
}

/// The first page of a block in its chunk, and the one after the last.
std::pair<size_t, size_t> pages_of(const Chunk& chunk, const std::byte* data, int64_t bytes) noexcept {
  const int64_t begin = data - chunk.data;
  const int64_t size = page_bytes();
  return {static_cast<size_t>(begin / size), static_cast<size_t>((begin + bytes - 1) / size + 1)};
}

/// Call with the arena's lock.
void count_users(const Chunk& chunk, const std::byte* data, int64_t bytes, int by) noexcept {
  const auto [first, end] = pages_of(chunk, data, bytes);
  for (size_t page = first; page < end; ++page) {
    chunk.pages->users[page] = static_cast<uint16_t>(chunk.pages->users[page] + by);
  }
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

/// Held while pages of a chunk are locked or unlocked.
class PageLocks::ChunkGuard {
 public:
  /// Waits until no other thread holds it.
  ChunkGuard(GuardedLists& lists, const Chunk& chunk) noexcept : lists_(lists), pages_(*chunk.pages) {
    while (!begin()) std::this_thread::yield();
  }
  /// This thread holds it already.
  ChunkGuard(GuardedLists& lists, const Chunk& chunk, std::adopt_lock_t) noexcept
      : lists_(lists), pages_(*chunk.pages) {}
  ~ChunkGuard() {
    const auto lists = lists_.lock();
    pages_.is_busy = false;
  }
  ChunkGuard(const ChunkGuard&) = delete;
  ChunkGuard& operator=(const ChunkGuard&) = delete;

 private:
  bool begin() noexcept {
    const auto lists = lists_.lock();
    return !std::exchange(pages_.is_busy, true);
  }

  GuardedLists& lists_;
  ChunkPages& pages_;
};

int PageLocks::lock_in_chunk(const Block& block, const Chunk& chunk) noexcept {
  const ChunkGuard guard(lists_, chunk);
  ChunkPages::Set& is_locked = chunk.pages->locked;
  const auto [first, end] = pages_of(chunk, block.data_, block.capacity_);
  const int64_t size = page_bytes();
  for (size_t page = first; page < end; ++page) {
    if (is_locked[page]) continue;
    const size_t begin = page;
    while (page < end && !is_locked[page]) ++page;
    const auto bytes = static_cast<int64_t>(page - begin) * size;
    if (const int error = lock_pages(chunk.data + static_cast<int64_t>(begin) * size, bytes)) return error;
    for (size_t done = begin; done < page; ++done) is_locked[done] = true;
    locked_.fetch_add(bytes, std::memory_order_relaxed);
  }
  return 0;
}

const Chunk* PageLocks::begin_unlocking(ChunkPages::Set& unused) noexcept {
  const auto lists = lists_.lock();
  for (const Chunk* chunk = lists->small.chunks(); chunk; chunk = chunk->next) {
    if (chunk->pages->is_busy) continue;
    unused = chunk->pages->unused();
    if (unused.none()) continue;
    chunk->pages->is_busy = true;
    return chunk;
  }
  return nullptr;
}

int64_t PageLocks::unlock_unused() noexcept {
  int64_t bytes = 0;
  const int64_t size = page_bytes();
  ChunkPages::Set unused;
  while (const Chunk* chunk = begin_unlocking(unused)) {
    const ChunkGuard guard(lists_, *chunk, std::adopt_lock);  // new users of these pages wait for its end
    for (size_t page = 0; page < ChunkPages::kMostPages; ++page) {
      if (unused[page]) unlock_pages(chunk->data + static_cast<int64_t>(page) * size, size);
    }
    chunk->pages->locked &= ~unused;
    bytes += static_cast<int64_t>(unused.count()) * size;
  }
  locked_.fetch_sub(bytes, std::memory_order_relaxed);
  return bytes;
}

int PageLocks::try_lock(Block& block, const Chunk* chunk) noexcept {
  if (chunk) {
    if (const int error = lock_in_chunk(block, *chunk)) return error;
  } else if (!block.is_locked()) {
    if (const int error = lock_pages(block.data_, block.capacity_)) return error;
    locked_.fetch_add(block.capacity_, std::memory_order_relaxed);
  }
  block.lock_generation_ = fork_generation();
  return 0;
}

void PageLocks::acquire(Block& block, const Chunk* chunk) noexcept {
  if (chunk) {
    const auto lists = lists_.lock();
    count_users(*chunk, block.data_, block.capacity_, 1);
    block.lock_generation_ = -1;
  }
  int error = try_lock(block, chunk);
  if (error != 0 && evict_cached(-1, true) + unlock_unused() > 0) error = try_lock(block, chunk);
  if (error == 0) {
    locked_in_use_.fetch_add(block.capacity_, std::memory_order_relaxed);
  } else {
    note_trouble(error, block.capacity_);
  }
}

void PageLocks::release(const Block& block, const Chunk* chunk) noexcept {
  if (block.is_locked()) locked_in_use_.fetch_sub(block.capacity_, std::memory_order_relaxed);
  if (!chunk) return;
  const auto lists = lists_.lock();
  count_users(*chunk, block.data_, block.capacity_, -1);
}

void PageLocks::forget(const Block& block) noexcept {
  if (block.is_locked()) locked_.fetch_sub(block.capacity_, std::memory_order_relaxed);
}

void PageLocks::forget(const Chunk& chunk) noexcept {
  locked_.fetch_sub(static_cast<int64_t>(chunk.pages->locked.count()) * page_bytes(), std::memory_order_relaxed);
}

void PageLocks::forget_all_in_child(const SmallHeap& heap) noexcept {
  g_trouble.error.store(0, std::memory_order_relaxed);
  for (const Chunk* chunk = heap.chunks(); chunk; chunk = chunk->next) {
    chunk->pages->locked.reset();
    chunk->pages->is_busy = false;  // that thread exists only in the parent
  }
  locked_.store(0, std::memory_order_relaxed);
  locked_in_use_.store(0, std::memory_order_relaxed);
}

}  // namespace artifex_devices
