// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "artifex_devices/device/cpu/pages.h"

// The pages that all arenas have mapped, the limits that apply to them, and the threads that are returning some.
namespace artifex_devices {

inline constexpr int kMostTries = 32;  // attempts to get memory: other threads may take what was released

/// Memory that the process may use, read from the machine at the first use; tests set it.
extern std::atomic<int64_t> g_usable_bytes;
int64_t usable_bytes() noexcept;
/// The same, asked again; where that fails, usable_bytes().
int64_t usable_bytes_now() noexcept;
/// `config().cache_bytes` with its default resolved.
int64_t cache_bound() noexcept;
/// Upper bound of the bytes of cached blocks that the system cannot reclaim (offer_pages).
int64_t firm_cache_bound() noexcept;

/// Bytes that all arenas have mapped with take_pages.
int64_t mapped_bytes() noexcept;
/// Like map_pages within the usable memory; drops cached blocks that would not fit in addition to the new pages.
std::byte* take_pages(int64_t bytes, const PageAdvice& advice) noexcept;
void return_pages(std::byte* data, int64_t bytes) noexcept;
/// Corrects the count in a forked child: `missing` bytes were not inherited, and no thread is releasing any.
void correct_mapped_in_child(int64_t missing) noexcept;

/// Created by a thread before it removes pages from their list to unmap them. Other threads can then wait for these
/// pages.
class Releasing {
 public:
  Releasing() = default;
  Releasing(const Releasing&) = delete;
  Releasing& operator=(const Releasing&) = delete;
  ~Releasing();
  void begin() noexcept;

 private:
  bool begun_ = false;
};
/// Number of finished releases.
int ended_releases() noexcept;
/// Waits for a running release. Returns false if no release is running, and no release has finished since
/// ended_releases() was `seen`.
bool wait_for_release(int seen) noexcept;

}  // namespace artifex_devices
