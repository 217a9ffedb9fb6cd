// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace artifex_devices {

/// Copies as memcpy does, but whole destination cache lines bypass the cache: no line is read before it is written and
/// none is kept. For copies far larger than a core's cache. Other threads see the bytes in order only after
/// `stream_fence()` on this thread. Where `ahead` is given, about as many bytes from there are fetched meanwhile: what
/// is copied next, if that does not follow the source. Any address may be given.
void stream_copy(std::byte* destination, const std::byte* source, int64_t bytes,
                 const std::byte* ahead = nullptr) noexcept;

/// From so many bytes on, written by the workers of one lane for one transfer, stores had better bypass the cache.
/// `set_stream_bytes` is called once, when the caches of the machine are known: an eighth of the last-level cache of a
/// lane (measured with 32 MiB: from 4 MiB on a cold copy that is read back is faster so).
int64_t stream_bytes() noexcept;
void set_stream_bytes(int64_t bytes) noexcept;

/// Orders the stores of earlier `stream_copy` calls of this thread before its later stores.
void stream_fence() noexcept;

/// Asks for a line of memory that will be read once, soon. Any address may be given.
inline void prefetch(const std::byte* address) noexcept { __builtin_prefetch(address, 0, 3); }

}  // namespace artifex_devices
