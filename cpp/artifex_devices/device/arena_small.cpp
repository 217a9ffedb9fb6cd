// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <new>

#include "artifex_devices/device/arena_state.h"

// Blocks below 1 MiB: cut from chunks, kept on a free list a class together with their headers.
namespace artifex_devices {
namespace {

constexpr int kHeadersAtOnce = 32;

}  // namespace

void Arena::State::count_taken_locked(int64_t capacity, bool hit) noexcept {
  const int64_t now = in_use.load(std::memory_order_relaxed) + capacity;
  in_use.store(now, std::memory_order_relaxed);
  peak_in_use = std::max(peak_in_use, now);
  ++num_allocs;
  if (hit) ++cache_hits;
}

Block* Arena::State::take_small(int64_t bytes) {
  const int size_class = class_of(bytes);
  const std::lock_guard lock(mutex);
  Block*& first = free[static_cast<size_t>(size_class)];
  Block* block = first;
  const bool hit = block != nullptr;
  if (hit) {
    first = block->next_;
    cached.store(cached.load(std::memory_order_relaxed) - block->capacity_, std::memory_order_relaxed);
  } else {
    block = cut_locked(size_class);
    if (!block) return nullptr;
  }
  auto* chunk = static_cast<Chunk*>(block->chunk_);
  if (chunk->in_use++ == 0) --empty_chunks;
  block->bytes_ = bytes;
  count_taken_locked(block->capacity_, hit);
  unpoison(block->data_, bytes);
  return block;
}

void Arena::State::give_small(Block* block) noexcept {
  poison(block->data_, block->capacity_);
  const std::lock_guard lock(mutex);
  Block*& first = free[static_cast<size_t>(block->size_class_)];
  block->next_ = first;
  first = block;
  in_use.store(in_use.load(std::memory_order_relaxed) - block->capacity_, std::memory_order_relaxed);
  const int64_t now = cached.load(std::memory_order_relaxed) + block->capacity_;
  cached.store(now, std::memory_order_relaxed);
  auto* chunk = static_cast<Chunk*>(block->chunk_);
  if (--chunk->in_use == 0 && ++empty_chunks > 1 && now > cache_bound()) trim_chunks_locked(false);
}

Block* Arena::State::header_locked() {
  if (!spare_headers) {
    // Kept for good: headers go round, and their peak number is that of the blocks.
    auto* slab = static_cast<Block*>(operator new(sizeof(Block) * kHeadersAtOnce, std::nothrow));
    if (!slab) return nullptr;
    for (int i = 0; i < kHeadersAtOnce; ++i) {
      Block* block = new (slab + i) Block();
      block->arena_ = arena;
      block->next_ = spare_headers;
      spare_headers = block;
    }
  }
  Block* block = spare_headers;
  spare_headers = block->next_;
  return block;
}

bool Arena::State::add_chunk_locked() {
  auto chunk = std::make_unique<Chunk>();
  chunks.reserve(chunks.size() + 1);
  if (pinned) chunk->locks = std::make_unique<PageLocks>();
  // A process with a few small arrays should not have its first pages rounded up to 2 MiB.
  chunk->data = map(kChunkBytes, !chunks.empty());
  if (!chunk->data) return false;
  poison(chunk->data, kChunkBytes);
  cutting = chunk.get();
  chunks.push_back(std::move(chunk));
  ++empty_chunks;
  return true;
}

Block* Arena::State::cut_locked(int size_class) {
  const auto cut = [this](int of_class) -> Block* {
    Block* block = header_locked();
    if (!block) return nullptr;
    block->size_class_ = of_class;
    block->capacity_ = class_bytes(of_class);
    block->data_ = cutting->data + cutting->cut;
    block->chunk_ = cutting;
    cutting->cut += block->capacity_;
    return block;
  };
  if (cutting && cutting->cut + class_bytes(size_class) > kChunkBytes) {
    // What is left of the chunk becomes free blocks of the largest classes that fit.
    for (int c = size_class; c >= 0;) {
      if (cutting->cut + class_bytes(c) > kChunkBytes) {
        --c;
      } else if (Block* rest = cut(c)) {
        rest->next_ = free[static_cast<size_t>(c)];
        free[static_cast<size_t>(c)] = rest;
        cached.store(cached.load(std::memory_order_relaxed) + rest->capacity_, std::memory_order_relaxed);
      } else {
        break;
      }
    }
    cutting = nullptr;
  }
  if (!cutting && !add_chunk_locked()) return nullptr;
  return cut(size_class);
}

int64_t Arena::State::trim_chunks_locked(bool cutting_too) noexcept {
  const auto goes = [&](const Chunk* chunk) { return chunk->in_use == 0 && (cutting_too || chunk != cutting); };
  int64_t bytes = 0;
  for (Block*& first : free) {
    Block** link = &first;
    while (Block* block = *link) {
      if (!goes(static_cast<const Chunk*>(block->chunk_))) {
        link = &block->next_;
        continue;
      }
      *link = block->next_;
      bytes += block->capacity_;
      block->next_ = spare_headers;
      spare_headers = block;
    }
  }
  cached.store(cached.load(std::memory_order_relaxed) - bytes, std::memory_order_relaxed);
  std::erase_if(chunks, [&](const std::unique_ptr<Chunk>& chunk) {
    if (!goes(chunk.get())) return false;
    if (chunk.get() == cutting) cutting = nullptr;
    forget_lock_of_chunk_locked(*chunk);
    unmap(chunk->data, kChunkBytes);
    --empty_chunks;
    return true;
  });
  return bytes;
}

}  // namespace artifex_devices
