// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__SANITIZE_ADDRESS__)
#define ARTIFEX_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ARTIFEX_ASAN 1
#endif
#endif
#ifdef ARTIFEX_ASAN
#include <sanitizer/asan_interface.h>
#endif

// System calls for pages, without state, exceptions or locks.
namespace artifex_devices {

inline constexpr int64_t kSmallestPage = 4096;
inline constexpr int64_t kHugePage = int64_t{2} << 20;
inline constexpr int64_t kAddressSpace = int64_t{1} << 47;  // of a user process

/// The bytes of a page of this system: 4 KiB on x86-64; a kernel for aarch64 is built for 4, 16 or 64 KiB.
int64_t page_bytes() noexcept;

/// Properties of requested pages.
struct PageAdvice {
  int node = -1;        // bound to this node if there are several; -1: not bound; Arena::kAllNodes: interleaved
  bool aligned = true;  // to 2 MiB
  bool huge = true;     // advised to be huge pages, from 2 MiB on
};
/// Maps pages from the system; returns null on failure.
std::byte* map_pages(int64_t bytes, const PageAdvice& advice) noexcept;
void unmap_pages(std::byte* data, int64_t bytes) noexcept;
/// Writes to every page so that it is resident; returns false if the system has no memory.
bool touch_pages(std::byte* data, int64_t bytes) noexcept;
/// Returns 0 or the error number.
int lock_pages(std::byte* data, int64_t bytes) noexcept;
void unlock_pages(std::byte* data, int64_t bytes) noexcept;
/// Sets whether a forked child inherits these pages; returns false if the system refuses.
bool keep_in_children(std::byte* data, int64_t bytes, bool keep) noexcept;
/// Lets the system reclaim the pages with their content when it is short of memory; until then they can be written
/// without a page fault. Returns false if unsupported.
bool offer_pages(std::byte* data, int64_t bytes) noexcept;

/// With AddressSanitizer, makes every access an error (or valid again); otherwise does nothing.
#ifdef ARTIFEX_ASAN
inline void poison(const void* data, int64_t bytes) noexcept {
  ASAN_POISON_MEMORY_REGION(data, static_cast<size_t>(bytes));
}
inline void unpoison(const void* data, int64_t bytes) noexcept {
  ASAN_UNPOISON_MEMORY_REGION(data, static_cast<size_t>(bytes));
}
#else
inline void poison(const void*, int64_t) noexcept {}
inline void unpoison(const void*, int64_t) noexcept {}
#endif

}  // namespace artifex_devices
