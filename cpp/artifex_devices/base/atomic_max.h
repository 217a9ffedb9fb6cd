// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

namespace artifex_devices {

/// Raises `target` to at least `value`, atomically. Relaxed memory order.
inline void atomic_max(std::atomic<int64_t>& target, int64_t value) noexcept {
  int64_t seen = target.load(std::memory_order_relaxed);
  while (seen < value && !target.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

}  // namespace artifex_devices
