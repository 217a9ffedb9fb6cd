// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "artifex_devices/base/fork.h"

namespace artifex_devices {

class Arena;

/// A piece of memory with a count of its users; gives itself back to its arena when the last one lets go.
/// Immutable after creation but for the count and the "give back to the system" mark. Thread-safe.
class Block {
 public:
  std::byte* data() const noexcept { return data_; }
  int64_t bytes() const noexcept { return bytes_; }  // what was asked for
  Arena* arena() const noexcept { return arena_; }   // null: memory that somebody else owns (see foreign_block)
  bool is_foreign() const noexcept { return arena_ == nullptr; }

  /// When the last user lets go, blocks of 1 MiB and more go back to the system instead of to the cache.
  void mark_for_system() noexcept { to_system_.store(true, std::memory_order_relaxed); }
  /// Its pages are locked in RAM, in this process: a forked child has none that are.
  bool is_locked() const noexcept { return lock_generation_ == fork_generation(); }
  int64_t use_count() const noexcept { return uses_.load(std::memory_order_acquire); }

 private:
  friend class Arena;
  friend class BlockRef;
  friend class BlockOwner;
  Block() = default;
  ~Block() = default;

  std::byte* data_ = nullptr;
  int64_t bytes_ = 0;
  int64_t capacity_ = 0;  // what was taken
  Arena* arena_ = nullptr;
  std::atomic<int64_t> uses_{0};
  std::atomic<bool> to_system_{false};
  int size_class_ = -1;            // -1: mapped on its own
  int64_t lock_generation_ = -1;   // the fork_generation() in which its pages were locked
  std::function<void()> release_;  // foreign blocks: called once, on the thread that lets go last
  // The arena's own: the chunk that a small block was cut from, and the list that a free one is on.
  void* chunk_ = nullptr;
  Block* next_ = nullptr;
  Block* previous_ = nullptr;
};

/// Counted pointer to a Block.
class BlockRef {
  friend class Arena;

 public:
  BlockRef() noexcept = default;
  explicit BlockRef(Block* block) noexcept : block_(block) { retain(); }
  BlockRef(const BlockRef& other) noexcept : block_(other.block_) { retain(); }
  BlockRef(BlockRef&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  BlockRef& operator=(BlockRef other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  ~BlockRef() {
    // The only user can let go without an atomic subtraction: nobody else can add one.
    if (block_ && (block_->use_count() == 1 || block_->uses_.fetch_sub(1, std::memory_order_acq_rel) == 1)) {
      dispose(block_);
    }
  }
  Block* operator->() const noexcept { return block_; }
  Block& operator*() const noexcept { return *block_; }
  explicit operator bool() const noexcept { return block_ != nullptr; }
  friend bool operator==(const BlockRef&, const BlockRef&) = default;

 private:
  void retain() const noexcept {
    if (block_) block_->uses_.fetch_add(1, std::memory_order_relaxed);
  }
  static void dispose(Block* block) noexcept;  // arena.cpp
  Block* block_ = nullptr;
};

/// Wraps memory that is not ours; `release` runs once when the last user is gone.
BlockRef foreign_block(void* data, int64_t bytes, std::function<void()> release);

}  // namespace artifex_devices
