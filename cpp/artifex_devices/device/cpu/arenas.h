// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

// Data about all arenas: their list, and the blocks that they cache together.
namespace artifex_devices {

class Arena;

/// All arenas, created at the first call and never destroyed.
const std::vector<Arena*>& all_arenas();

/// Unmaps the least recently freed mapped blocks of all arenas until at most `bound` bytes are cached, including small
/// blocks; returns the unmapped bytes.
int64_t evict_cached(int64_t bound, bool pinned_only = false) noexcept;
/// Drops cached blocks if the process would exceed `usable` bytes with `bytes` more, and dropping can help. Returns the
/// bytes dropped.
int64_t drop_cached_for(int64_t bytes, int64_t usable) noexcept;

}  // namespace artifex_devices
