// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <new>
#include <utility>

#include "artifex_devices/device/cpu/arena_state.h"

// Blocks below 1 MiB: allocated from chunks, cached with their headers on a free list for each class.
namespace artifex_devices {
namespace {

constexpr int kHeadersAtOnce = 32;
// The rest of a chunk becomes at most this many blocks: each takes four fifths of the rest, down to 512 bytes.
constexpr int kMostOfRest = 8;

// Never freed: headers are reused, and there are at most as many as blocks at the peak.
Block* new_headers() noexcept {
  return static_cast<Block*>(operator new(sizeof(Block) * kHeadersAtOnce, std::nothrow));
}

}  // namespace

void Arena::State::count_taken_locked(int64_t capacity, bool hit) noexcept {
  const int64_t now = in_use.load(std::memory_order_relaxed) + capacity;
  in_use.store(now, std::memory_order_relaxed);
  peak_in_use = std::max(peak_in_use, now);
  ++num_allocs;
  if (hit) ++cache_hits;
}

inline Block* Arena::State::pop_small_locked(int size_class) noexcept {
  Block*& first = free[static_cast<size_t>(size_class)];
  Block* block = first;
  if (!block) return nullptr;
  first = block->next_;
  cached.store(cached.load(std::memory_order_relaxed) - block->capacity_, std::memory_order_relaxed);
  return block;
}

inline void Arena::State::use_small_locked(Block* block, int64_t bytes, bool hit) noexcept {
  auto* chunk = static_cast<ArenaChunk*>(block->chunk_);
  if (chunk->in_use++ == 0) --empty_chunks;
  block->bytes_ = bytes;
  count_taken_locked(block->capacity_, hit);
  unpoison(block->data_, bytes);
}

Block* Arena::State::take_small(int64_t bytes) {
  const int size_class = class_of(bytes);
  {
    const std::lock_guard lock(mutex);
    if (Block* block = pop_small_locked(size_class)) {
      use_small_locked(block, bytes, true);
      return block;
    }
  }
  return cut_small(size_class, bytes);
}

// Chunks and headers are allocated without the lock when they turn out to be needed; then the loop repeats.
Block* Arena::State::cut_small(int size_class, int64_t bytes) noexcept {
  ArenaChunk* chunk = nullptr;
  Block* headers = nullptr;
  Block* block = nullptr;
  for (bool is_short = false; !block && !is_short;) {
    bool needs_headers = false;
    bool is_first = false;
    {
      const std::lock_guard lock(mutex);
      if (headers) add_headers_locked(std::exchange(headers, nullptr));
      block = pop_small_locked(size_class);  // another thread may have freed one
      const bool hit = block != nullptr;
      if (!block && num_spare_headers > kMostOfRest) block = cut_locked(size_class, chunk);
      if (block) {
        use_small_locked(block, bytes, hit);
        break;
      }
      needs_headers = num_spare_headers <= kMostOfRest;
      is_first = num_chunks == 0;
    }
    // A process with a few small arrays should not map 2 MiB at once.
    if (needs_headers) {
      headers = new_headers();
      is_short = headers == nullptr;
    } else {
      chunk = new_chunk(!is_first);
      is_short = chunk == nullptr;
    }
  }
  if (chunk) drop_chunks(chunk);  // another thread was first
  return block;
}

void Arena::State::give_small(Block* block) noexcept {
  poison(block->data_, block->capacity_);
  {
    const std::lock_guard lock(mutex);
    Block*& first = free[static_cast<size_t>(block->size_class_)];
    block->next_ = first;
    first = block;
    in_use.store(in_use.load(std::memory_order_relaxed) - block->capacity_, std::memory_order_relaxed);
    const int64_t now = cached.load(std::memory_order_relaxed) + block->capacity_;
    cached.store(now, std::memory_order_relaxed);
    auto* chunk = static_cast<ArenaChunk*>(block->chunk_);
    if (--chunk->in_use > 0 || ++empty_chunks <= 1 || now <= cache_bound()) return;
  }
  trim_chunks(false);
}

void Arena::State::add_headers_locked(Block* slab) noexcept {
  for (int i = 0; i < kHeadersAtOnce; ++i) {
    Block* block = new (slab + i) Block();
    block->space_ = arena;
    block->next_ = spare_headers;
    spare_headers = block;
  }
  num_spare_headers += kHeadersAtOnce;
}

ArenaChunk* Arena::State::new_chunk(bool huge) noexcept {
  std::unique_ptr<ArenaChunk> chunk(new (std::nothrow) ArenaChunk());
  if (!chunk) return nullptr;
  if (pinned) {
    chunk->locks.reset(new (std::nothrow) PageLocks());
    if (!chunk->locks) return nullptr;
  }
  chunk->data = map(kChunkBytes, huge);
  if (!chunk->data) return nullptr;
  poison(chunk->data, kChunkBytes);
  return chunk.release();
}

// Returns null if no chunk has space. Takes `fresh` if it needs a chunk.
Block* Arena::State::cut_locked(int size_class, ArenaChunk*& fresh) noexcept {
  const int64_t capacity = class_bytes(size_class);
  if (!cutting || cutting->cut + capacity > kChunkBytes) {
    if (!fresh) return nullptr;
    if (cutting) cut_rest_locked(size_class);
    fresh->next = chunks;
    chunks = cutting = std::exchange(fresh, nullptr);
    ++num_chunks;
    ++empty_chunks;
  }
  return cut_block_locked(size_class);
}

Block* Arena::State::cut_block_locked(int size_class) noexcept {
  Block* block = spare_headers;
  spare_headers = block->next_;
  --num_spare_headers;
  block->size_class_ = size_class;
  block->capacity_ = class_bytes(size_class);
  block->data_ = cutting->data + cutting->cut;
  block->chunk_ = cutting;
  cutting->cut += block->capacity_;
  return block;
}

// The rest of the chunk becomes free blocks of the largest classes that fit.
void Arena::State::cut_rest_locked(int largest_class) noexcept {
  for (int c = largest_class; c >= 0;) {
    if (cutting->cut + class_bytes(c) > kChunkBytes) {
      --c;
      continue;
    }
    Block* rest = cut_block_locked(c);
    rest->next_ = free[static_cast<size_t>(c)];
    free[static_cast<size_t>(c)] = rest;
    cached.store(cached.load(std::memory_order_relaxed) + rest->capacity_, std::memory_order_relaxed);
  }
}

int64_t Arena::State::trim_chunks(bool cutting_too) noexcept {
  const auto goes = [&](const ArenaChunk& chunk) {
    return chunk.in_use == 0 && (cutting_too || &chunk != cutting) && !(chunk.locks && chunk.locks->is_busy);
  };
  Releasing releasing;
  ArenaChunk* gone = nullptr;
  int64_t bytes = 0;
  {
    const std::lock_guard lock(mutex);
    const ArenaChunk* first = empty_chunks == 0 ? nullptr : chunks;
    while (first && !goes(*first)) first = first->next;
    if (!first) return 0;
    releasing.begin();
    for (Block*& newest : free) {
      Block** link = &newest;
      while (Block* block = *link) {
        if (!goes(*static_cast<const ArenaChunk*>(block->chunk_))) {
          link = &block->next_;
          continue;
        }
        *link = block->next_;
        bytes += block->capacity_;
        block->next_ = spare_headers;
        spare_headers = block;
        ++num_spare_headers;
      }
    }
    cached.store(cached.load(std::memory_order_relaxed) - bytes, std::memory_order_relaxed);
    for (ArenaChunk** link = &chunks; *link;) {
      ArenaChunk* chunk = *link;
      if (!goes(*chunk)) {
        link = &chunk->next;
        continue;
      }
      *link = chunk->next;
      chunk->next = gone;
      gone = chunk;
      if (chunk == cutting) cutting = nullptr;
      --num_chunks;
      --empty_chunks;
    }
  }
  drop_chunks(gone);
  return bytes;
}

void Arena::State::drop_chunks(ArenaChunk* first) noexcept {
  while (ArenaChunk* chunk = first) {
    first = chunk->next;
    forget_lock_of_chunk(*chunk);
    unmap(chunk->data, kChunkBytes);
    delete chunk;
  }
}

}  // namespace artifex_devices
