// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

namespace artifex_devices {

/// A free block and its links in FreeBlocks.
struct FreeBlock {
  int64_t capacity = 0;
  uint64_t freed_at = 0;  // sequence number of the release in the process
  FreeBlock* smaller = nullptr;
  FreeBlock* larger = nullptr;
  FreeBlock* older = nullptr;
  FreeBlock* newer = nullptr;
};

/// The cache of mapped blocks of one arena, by size (a treap) and by age (a list). Operations take logarithmic time and
/// allocate nothing. Not thread-safe, except bytes() and oldest_freed_at().
class FreeBlocks {
 public:
  static constexpr uint64_t kNone = UINT64_MAX;

  /// `freed_at` must be unique.
  void add(FreeBlock& block) noexcept;
  void remove(FreeBlock& block) noexcept;

  /// Returns the smallest block of `least` to `most` bytes, the last freed among equals, or null.
  FreeBlock* best_fit(int64_t least, int64_t most) const noexcept;
  FreeBlock* oldest() const noexcept { return oldest_; }
  /// Of all its blocks; may be called at any time.
  int64_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }
  /// `freed_at` of the oldest block, or kNone; may be called at any time.
  uint64_t oldest_freed_at() const noexcept { return oldest_freed_at_.load(std::memory_order_relaxed); }

 private:
  void note_change(int64_t bytes) noexcept {
    bytes_.store(bytes_.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
    oldest_freed_at_.store(oldest_ ? oldest_->freed_at : kNone, std::memory_order_relaxed);
  }

  FreeBlock* root_ = nullptr;
  FreeBlock* oldest_ = nullptr;
  FreeBlock* newest_ = nullptr;
  std::atomic<int64_t> bytes_{0};
  std::atomic<uint64_t> oldest_freed_at_{kNone};
};

}  // namespace artifex_devices
