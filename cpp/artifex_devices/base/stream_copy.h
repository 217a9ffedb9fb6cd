// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace artifex_devices {

/// Copies like memcpy, but whole destination cache lines bypass the cache: they are not read before they are written,
/// and not cached. For copies far larger than a core's cache. Other threads see the bytes in order only after
/// `stream_fence()` on this thread. If the next source does not follow `source` in memory, pass it as `ahead`: about as
/// many bytes of it are prefetched. Any address is allowed.
void stream_copy(std::byte* destination, const std::byte* source, int64_t bytes,
                 const std::byte* ahead = nullptr) noexcept;

/// Bytes written by the workers of one lane for one transfer above which stores should bypass the cache.
/// `set_stream_bytes` is called once the caches of the machine are known: an eighth of the last-level cache of a lane
/// (measured with 32 MiB: above 4 MiB, a cold copy that is read back is faster).
int64_t stream_bytes() noexcept;
void set_stream_bytes(int64_t bytes) noexcept;

/// Orders the stores of earlier `stream_copy` calls of this thread before its later stores.
void stream_fence() noexcept;

/// Prefetches a line of memory that will be read once, soon. Any address is allowed.
inline void prefetch(const std::byte* address) noexcept { __builtin_prefetch(address, 0, 3); }

}  // namespace artifex_devices
