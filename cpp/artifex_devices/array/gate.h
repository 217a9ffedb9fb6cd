// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

namespace artifex_devices {

/// Lets threads use something until it is closed. A count instead of a lock: a forked child never waits, and at worst
/// leaks what another thread of its parent was using.
class Gate {
 public:
  /// Returns false once it is closed; otherwise call leave().
  bool enter() noexcept {
    int64_t inside = inside_.load(std::memory_order_relaxed);
    while ((inside & kClosed) == 0) {
      if (inside_.compare_exchange_weak(inside, inside + 1, std::memory_order_acquire, std::memory_order_relaxed)) {
        return true;
      }
    }
    return false;
  }
  /// leave() and close() return true to one thread: once the gate is closed and no thread is inside.
  [[nodiscard]] bool leave() noexcept { return inside_.fetch_sub(1, std::memory_order_acq_rel) == (kClosed | 1); }
  [[nodiscard]] bool close() noexcept { return inside_.fetch_or(kClosed, std::memory_order_acq_rel) == 0; }

 private:
  static constexpr int64_t kClosed = int64_t{1} << 62;
  std::atomic<int64_t> inside_{0};
};

}  // namespace artifex_devices
