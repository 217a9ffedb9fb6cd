// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

namespace artifex_devices {

/// Makes `target` at least `value`, whatever other threads write meanwhile. Orders no other memory.
inline void raise_to(std::atomic<int64_t>& target, int64_t value) noexcept {
  int64_t seen = target.load(std::memory_order_relaxed);
  while (seen < value && !target.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

}  // namespace artifex_devices
