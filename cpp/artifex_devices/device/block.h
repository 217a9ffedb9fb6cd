// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "artifex_devices/base/fork.h"

namespace artifex_devices {

class MemorySpace;

/// A piece of memory with a reference count; returned to its space when the last reference is released. Immutable after
/// creation except the count and the mark "return to the system". Thread-safe.
class Block {
 public:
  /// Where the memory is, as reported to users. Dereferencing it is a segmentation fault unless the host can read the
  /// space.
  uint64_t address() const noexcept;
  /// For code of the host. Throws Unavailable, naming the transfer that is missing, unless the host can read the space.
  std::byte* host_data() const;
  /// For code that runs on the device: copies between spaces, and functions on the shards of an array. The host must
  /// not dereference it.
  std::byte* device_data() const noexcept { return data_; }
  int64_t bytes() const noexcept { return bytes_; }       // the requested size
  MemorySpace* space() const noexcept { return space_; }  // null: memory of the host that the caller lent
  bool is_foreign() const noexcept { return space_ == nullptr || release_ != nullptr; }
  bool is_host_readable() const noexcept;

  /// When the last reference is released, blocks of 1 MiB and more are returned to the system, not to the cache.
  void mark_for_system() noexcept { to_system_.store(true, std::memory_order_relaxed); }
  /// Another library was given the address. Work of the GPU that it has started is waited for by copies from and to the
  /// memory, and when the last reference is released.
  void mark_as_exported();
  /// Returns whether its pages are locked in RAM. A forked child has no locked pages.
  bool is_locked() const noexcept { return lock_generation_ == fork_generation(); }
  int64_t use_count() const noexcept { return uses_.load(std::memory_order_acquire); }

 protected:
  Block() = default;
  ~Block() = default;

 private:
  friend class Arena;
  friend class ArenaBlocks;
  friend class BlockRef;
  friend class BlockOwner;
  friend class MemorySpace;
  friend class PageLocks;
  friend class SmallHeap;

  std::byte* data_ = nullptr;
  int64_t bytes_ = 0;
  int64_t capacity_ = 0;  // the allocated size
  MemorySpace* space_ = nullptr;
  std::atomic<int64_t> uses_{0};
  std::atomic<bool> to_system_{false};
  std::atomic<bool> is_exported_{false};
  int64_t lock_generation_ = -1;   // the fork_generation() in which its pages were locked
  std::function<void()> release_;  // foreign blocks: called once, by the thread that releases the last reference
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
    // The only user can release it without an atomic subtraction: no other thread can add a reference.
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
  static void dispose(Block* block) noexcept;
  Block* block_ = nullptr;
};

/// Wraps memory of the host that the caller lends; `release` is called once when the last reference is released. For
/// memory of a GPU see MemorySpace::foreign_block.
BlockRef foreign_block(void* data, int64_t bytes, std::function<void()> release);

}  // namespace artifex_devices
