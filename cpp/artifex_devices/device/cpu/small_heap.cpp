// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/device/cpu/small_heap.h"

#include <new>
#include <utility>

namespace artifex_devices {

SmallBlock* SmallHeap::new_headers() noexcept {
  return static_cast<SmallBlock*>(operator new(sizeof(SmallBlock) * kHeadersAtOnce, std::nothrow));
}

void SmallHeap::add_headers(SmallBlock* slab) noexcept {
  for (int i = 0; i < kHeadersAtOnce; ++i) {
    SmallBlock* block = new (slab + i) SmallBlock();
    block->space_ = space_;
    block->next = std::exchange(spare_headers_, block);
  }
  num_spare_headers_ += kHeadersAtOnce;
}

SmallBlock* SmallHeap::cut(int size_class, int64_t bytes, Chunk*& fresh) noexcept {
  if (!current_ || current_->cut + class_bytes(size_class) > kChunkBytes) {
    if (!fresh) return nullptr;
    if (current_) cut_rest(size_class);
    fresh->next = chunks_;
    chunks_ = current_ = std::exchange(fresh, nullptr);
    ++num_chunks_;
    ++empty_chunks_;
  }
  SmallBlock* block = cut_current(size_class);
  use(block, bytes);
  return block;
}

SmallBlock* SmallHeap::cut_current(int size_class) noexcept {
  SmallBlock* block = spare_headers_;
  spare_headers_ = block->next;
  --num_spare_headers_;
  block->size_class = size_class;
  block->capacity_ = class_bytes(size_class);
  block->data_ = current_->data + current_->cut;
  block->chunk = current_;
  current_->cut += block->capacity_;
  return block;
}

// The rest of the chunk becomes free blocks of the largest classes that fit.
void SmallHeap::cut_rest(int largest_class) noexcept {
  for (int c = largest_class; c >= 0;) {
    if (current_->cut + class_bytes(c) > kChunkBytes) {
      --c;
    } else {
      add_free(cut_current(c));
    }
  }
}

bool SmallHeap::is_removable(const Chunk& chunk, bool current_too) const noexcept {
  return chunk.in_use == 0 && (current_too || &chunk != current_) && !(chunk.pages && chunk.pages->is_busy);
}

bool SmallHeap::has_removable(bool current_too) const noexcept {
  if (empty_chunks_ == 0) return false;
  const Chunk* chunk = chunks_;
  while (chunk && !is_removable(*chunk, current_too)) chunk = chunk->next;
  return chunk != nullptr;
}

Chunk* SmallHeap::remove_empty(bool current_too, int64_t& bytes) noexcept {
  for (SmallBlock*& newest : free_) {
    SmallBlock** link = &newest;
    while (SmallBlock* block = *link) {
      if (!is_removable(*block->chunk, current_too)) {
        link = &block->next;
        continue;
      }
      *link = block->next;
      bytes += block->capacity_;
      add_cached(-block->capacity_);
      block->next = std::exchange(spare_headers_, block);
      ++num_spare_headers_;
    }
  }
  Chunk* removed = nullptr;
  for (Chunk** link = &chunks_; *link;) {
    Chunk* chunk = *link;
    if (!is_removable(*chunk, current_too)) {
      link = &chunk->next;
      continue;
    }
    *link = chunk->next;
    chunk->next = std::exchange(removed, chunk);
    if (chunk == current_) current_ = nullptr;
    --num_chunks_;
    --empty_chunks_;
  }
  return removed;
}

}  // namespace artifex_devices
