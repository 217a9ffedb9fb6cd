// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <thread>

namespace artifex_devices {

/// A lock held for a few instructions, with half the atomic operations of std::mutex. Waiting threads yield soon.
class ShortLock {
 public:
  void lock() noexcept {
    for (int tries = 0; held_.exchange(true, std::memory_order_acquire); ++tries) {
      while (held_.load(std::memory_order_relaxed)) {
        if (++tries > kSpins) std::this_thread::yield();
      }
    }
  }
  void unlock() noexcept { held_.store(false, std::memory_order_release); }

 private:
  static constexpr int kSpins = 64;
  std::atomic<bool> held_{false};
};

}  // namespace artifex_devices
