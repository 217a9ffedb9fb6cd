// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/device/cpu/page_budget.h"

#include <algorithm>

#include "artifex_devices/base/config.h"
#include "artifex_devices/device/cpu/arenas.h"
#include "artifex_devices/topology/machine.h"
#include "artifex_devices/topology/system_files.h"

namespace artifex_devices {
namespace {

constinit std::atomic<int64_t> g_mapped{0};
constinit std::atomic<int> g_releasing{0};
constinit std::atomic<int> g_released{0};

bool count_mapped(int64_t bytes, int64_t limit) noexcept {
  int64_t now = g_mapped.load(std::memory_order_relaxed);
  do {
    if (bytes > limit - now) return false;
  } while (!g_mapped.compare_exchange_weak(now, now + bytes, std::memory_order_relaxed));
  return true;
}

bool claim(int64_t bytes) noexcept {
  const int64_t usable = usable_bytes();
  for (int tries = 0; tries < kMostTries && bytes <= usable; ++tries) {
    const int seen = ended_releases();
    const int64_t dropped = drop_cached_for(bytes, usable);
    if (count_mapped(bytes, usable)) return true;
    if (dropped == 0 && !wait_for_release(seen)) break;
  }
  return count_mapped(bytes, usable_bytes_now());
}

}  // namespace

constinit std::atomic<int64_t> g_usable_bytes{-1};

int64_t usable_bytes() noexcept {
  // Not a guarded static: a child forked during its initialization would wait forever.
  int64_t bytes = g_usable_bytes.load(std::memory_order_relaxed);
  if (bytes < 0) {
    bytes = Machine::live()->usable_memory_bytes();
    g_usable_bytes.store(bytes, std::memory_order_relaxed);
  }
  return bytes;
}

int64_t usable_bytes_now() noexcept {
  try {
    return usable_memory_bytes_now();  // with swap space, or the limit was raised
  } catch (const std::exception&) {    // no memory or file for the query
    return usable_bytes();
  }
}

int64_t cache_bound() noexcept {
  const int64_t asked = config().cache_bytes.load(std::memory_order_relaxed);
  return asked >= 0 ? asked : usable_bytes() / 4;
}

int64_t firm_cache_bound() noexcept { return std::min(int64_t{1} << 30, usable_bytes() / 8); }

int64_t mapped_bytes() noexcept { return g_mapped.load(std::memory_order_relaxed); }

void correct_mapped_in_child(int64_t missing) noexcept {
  g_mapped.fetch_sub(missing, std::memory_order_relaxed);
  g_releasing.store(0, std::memory_order_relaxed);
}

std::byte* take_pages(int64_t bytes, const PageAdvice& advice) noexcept {
  if (!claim(bytes)) return nullptr;
  std::byte* data = map_pages(bytes, advice);
  if (!data) g_mapped.fetch_sub(bytes, std::memory_order_relaxed);
  return data;
}

void return_pages(std::byte* data, int64_t bytes) noexcept {
  Releasing releasing;
  releasing.begin();
  unmap_pages(data, bytes);
  g_mapped.fetch_sub(bytes, std::memory_order_relaxed);
}

void Releasing::begin() noexcept {
  if (!begun_) g_releasing.fetch_add(1, std::memory_order_relaxed);
  begun_ = true;
}

Releasing::~Releasing() {
  if (!begun_) return;
  g_released.fetch_add(1, std::memory_order_release);
  g_releasing.fetch_sub(1, std::memory_order_release);
  g_released.notify_all();
}

int ended_releases() noexcept { return g_released.load(std::memory_order_acquire); }

bool wait_for_release(int seen) noexcept {
  // Counts the release as finished before it is no longer running.
  if (g_releasing.load(std::memory_order_acquire) == 0) return ended_releases() != seen;
  g_released.wait(seen, std::memory_order_acquire);
  return true;
}

}  // namespace artifex_devices
