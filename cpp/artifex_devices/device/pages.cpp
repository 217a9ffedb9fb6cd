// SPDX-License-Identifier: Apache-2.0
#include <sys/mman.h>

#include <algorithm>
#include <atomic>

#include "artifex_devices/base/config.h"
#include "artifex_devices/device/arena_state.h"
#include "artifex_devices/topology/binding.h"

namespace artifex_devices {
namespace {

constexpr int64_t kHugePage = int64_t{2} << 20;

void* map(int64_t bytes) noexcept {
  void* data = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return data == MAP_FAILED ? nullptr : data;
}

void unmap(std::byte* data, int64_t bytes) noexcept {
  if (bytes > 0) munmap(data, static_cast<size_t>(bytes));
}

int64_t past_alignment(const void* data) noexcept {
  return static_cast<int64_t>(reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(kHugePage));
}

}  // namespace

std::byte* map_pages(int64_t bytes, int node, bool huge) noexcept {
  auto* data = static_cast<std::byte*>(map(bytes));
  if (!data) return nullptr;
  if (past_alignment(data)) {
    // Newer kernels align by themselves; else map too much and give the ends back.
    unmap(data, bytes);
    data = static_cast<std::byte*>(map(bytes + kHugePage));
    if (!data) return nullptr;
    const int64_t past = past_alignment(data);
    const int64_t front = past ? kHugePage - past : 0;
    unmap(data, front);
    data += front;
    unmap(data + bytes, kHugePage - front);
  }
  if (huge && bytes >= kHugePage) madvise(data, static_cast<size_t>(bytes), MADV_HUGEPAGE);
  const std::shared_ptr<const Machine> machine = Machine::live();
  if (machine->numa_nodes().size() > 1) bind_memory(*machine, node, data, static_cast<size_t>(bytes));
  return data;
}

void unmap_pages(std::byte* data, int64_t bytes) noexcept {
  unpoison(data, bytes);
  unmap(data, bytes);
}

bool keep_in_children(std::byte* data, int64_t bytes, bool keep) noexcept {
  return madvise(data, static_cast<size_t>(bytes), keep ? MADV_DOFORK : MADV_DONTFORK) == 0;
}

int64_t cache_bound() noexcept {
  const int64_t asked = config().cache_bytes.load(std::memory_order_relaxed);
  if (asked >= 0) return asked;
  // Not a guarded static: it takes a while to read, and a child forked meanwhile would wait for the guard for ever.
  static std::atomic<int64_t> known{-1};
  int64_t bound = known.load(std::memory_order_relaxed);
  if (bound < 0) {
    bound = std::min(int64_t{1} << 30, Machine::live()->usable_memory_bytes() / 8);
    known.store(bound, std::memory_order_relaxed);
  }
  return bound;
}

}  // namespace artifex_devices
