// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "artifex_devices/device/block.h"
#include "artifex_devices/device/cpu/chunk.h"

namespace artifex_devices {

inline constexpr int64_t kAlignment = 64;
inline constexpr int64_t kMappedFrom = int64_t{1} << 20;  // blocks of at least this size are mapped separately
inline constexpr int kSizeClasses = 52;

/// Classes are the multiples of 64 up to 512, then four for each doubling up to 1 MiB: at most a fifth is unused.
/// Example: 513 bytes are in class 8, of 640 bytes.
constexpr int class_of(int64_t bytes) noexcept {
  if (bytes <= 512) return bytes <= kAlignment ? 0 : static_cast<int>((bytes - 1) / kAlignment);
  const uint64_t last = static_cast<uint64_t>(bytes) - 1;
  const int shift = static_cast<int>(std::bit_width(last)) - 1;
  return 8 + (shift - 9) * 4 + static_cast<int>((last >> (shift - 2)) & 3);
}
constexpr int64_t class_bytes(int size_class) noexcept {
  if (size_class < 8) return (size_class + 1) * kAlignment;
  return static_cast<int64_t>(5 + (size_class - 8) % 4) << (7 + (size_class - 8) / 4);
}
static_assert(class_of(0) == 0 && class_of(64) == 0 && class_of(65) == 1 && class_of(512) == 7 && class_of(513) == 8);
static_assert(class_bytes(8) == 640 && class_bytes(kSizeClasses - 1) == kMappedFrom);
static_assert(class_of(kMappedFrom - 1) == kSizeClasses - 1);

struct SmallBlock : Block {
  int size_class = 0;
  Chunk* chunk = nullptr;
  SmallBlock* next = nullptr;  // of a free block
};

/// The blocks below 1 MiB of one arena: cut from chunks, and cached with their headers on a free list for each class.
/// The caller provides chunks and headers: the heap makes no system calls and does not allocate. Not thread-safe,
/// except cached_bytes().
class SmallHeap {
 public:
  /// Headers are never freed: they are reused, and there are at most as many as blocks at the peak.
  static constexpr int kHeadersAtOnce = 32;
  static SmallBlock* new_headers() noexcept;  // null if the system has no memory

  explicit SmallHeap(MemorySpace* space) : space_(space) {}

  /// Returns the block of the class that was freed last, or null.
  SmallBlock* reuse(int size_class, int64_t bytes) noexcept {
    SmallBlock*& first = free_[static_cast<size_t>(size_class)];
    SmallBlock* block = first;
    if (!block) return nullptr;
    first = block->next;
    add_cached(-block->capacity_);
    use(block, bytes);
    return block;
  }
  /// Cuts a new block. Uses the chunk `fresh`, if not null, when the current chunk has too little space; returns null
  /// if it needs a chunk and `fresh` is null. Requires !needs_headers().
  SmallBlock* cut(int size_class, int64_t bytes, Chunk*& fresh) noexcept;
  bool needs_headers() const noexcept { return num_spare_headers_ <= kMostOfRest; }
  void add_headers(SmallBlock* slab) noexcept;
  /// Caches a block without users. Returns whether an empty chunk other than the last one may be removed.
  bool give(SmallBlock* block) noexcept {
    add_free(block);
    return --block->chunk->in_use == 0 && ++empty_chunks_ > 1;
  }

  /// Whether remove_empty() would remove a chunk.
  bool has_removable(bool current_too) const noexcept;
  /// Removes the chunks without a block in use (the current one only on request). Returns their list, and adds the
  /// bytes of their free blocks to `bytes`.
  Chunk* remove_empty(bool current_too, int64_t& bytes) noexcept;

  Chunk* chunks() const noexcept { return chunks_; }  // newest first
  int64_t num_chunks() const noexcept { return num_chunks_; }
  /// Bytes of free blocks; may be called at any time.
  int64_t cached_bytes() const noexcept { return cached_.load(std::memory_order_relaxed); }

 private:
  /// The rest of a chunk becomes at most this many blocks: each takes four fifths of the rest, down to 512 bytes.
  static constexpr int kMostOfRest = 8;

  void use(SmallBlock* block, int64_t bytes) noexcept {
    if (block->chunk->in_use++ == 0) --empty_chunks_;
    block->bytes_ = bytes;
    unpoison(block->data_, bytes);
  }
  SmallBlock* cut_current(int size_class) noexcept;
  void cut_rest(int largest_class) noexcept;
  void add_free(SmallBlock* block) noexcept {
    block->next = std::exchange(free_[static_cast<size_t>(block->size_class)], block);
    add_cached(block->capacity_);
  }
  bool is_removable(const Chunk& chunk, bool current_too) const noexcept;
  void add_cached(int64_t bytes) noexcept { cached_.store(cached_bytes() + bytes, std::memory_order_relaxed); }

  MemorySpace* space_;
  std::array<SmallBlock*, kSizeClasses> free_{};  // last in, first out
  SmallBlock* spare_headers_ = nullptr;
  int64_t num_spare_headers_ = 0;
  Chunk* chunks_ = nullptr;
  int64_t num_chunks_ = 0;
  Chunk* current_ = nullptr;  // new blocks are cut from it
  int64_t empty_chunks_ = 0;  // without a block in use
  std::atomic<int64_t> cached_{0};
};

}  // namespace artifex_devices
