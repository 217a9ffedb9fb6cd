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

/// Orders the stores of earlier `stream_copy` calls of this thread before its later stores.
void stream_fence() noexcept;

/// Asks for a line of memory that will be read once, soon. Any address may be given.
inline void prefetch(const std::byte* address) noexcept { __builtin_prefetch(address, 0, 3); }

}  // namespace artifex_devices
