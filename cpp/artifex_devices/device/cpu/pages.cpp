// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/device/cpu/pages.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "artifex_devices/device/cpu/arena.h"
#include "artifex_devices/topology/binding.h"

namespace artifex_devices {
namespace {

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

int64_t page_bytes() noexcept { return sysconf(_SC_PAGESIZE); }

std::byte* map_pages(int64_t bytes, const PageAdvice& advice) noexcept {
  auto* data = static_cast<std::byte*>(map(bytes));
  if (!data) return nullptr;
  if (advice.aligned && past_alignment(data)) {
    // Newer kernels align mappings; otherwise map too much and unmap the ends.
    unmap(data, bytes);
    data = static_cast<std::byte*>(map(bytes + kHugePage));
    if (!data) return nullptr;
    const int64_t past = past_alignment(data);
    const int64_t front = past ? kHugePage - past : 0;
    unmap(data, front);
    data += front;
    unmap(data + bytes, kHugePage - front);
  }
  if (advice.huge && bytes >= kHugePage) madvise(data, static_cast<size_t>(bytes), MADV_HUGEPAGE);
  if (advice.node == -1) return data;
  const std::shared_ptr<const Machine> machine = Machine::live();
  if (machine->numa_nodes().size() < 2) return data;
  if (advice.node == Arena::kAllNodes) {
    interleave_memory(*machine, data, static_cast<size_t>(bytes));
  } else {
    bind_memory(*machine, advice.node, data, static_cast<size_t>(bytes));
  }
  return data;
}

bool touch_pages(std::byte* data, int64_t bytes) noexcept {
#ifdef MADV_POPULATE_WRITE
  if (madvise(data, static_cast<size_t>(bytes), MADV_POPULATE_WRITE) == 0) return true;
  if (errno != EINVAL) return false;  // EINVAL: older kernels do not know it
#endif
  for (int64_t i = 0; i < bytes; i += kSmallestPage) *const_cast<volatile std::byte*>(data + i) = std::byte{0};
  return true;
}

// Direct system calls: the sanitizers' versions of mlock do nothing.
int lock_pages(std::byte* data, int64_t bytes) noexcept {
  if (syscall(SYS_mlock, data, static_cast<size_t>(bytes)) == 0) return 0;
  const int error = errno;
  unlock_pages(data, bytes);  // undo the locked part
  return error;
}

void unlock_pages(std::byte* data, int64_t bytes) noexcept { syscall(SYS_munlock, data, static_cast<size_t>(bytes)); }

int64_t page_lock_limit() noexcept {
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return -1;
  return static_cast<int64_t>(std::min<rlim_t>(limit.rlim_cur, INT64_MAX));
}

void unmap_pages(std::byte* data, int64_t bytes) noexcept {
  unpoison(data, bytes);
  unmap(data, bytes);
}

bool keep_in_children(std::byte* data, int64_t bytes, bool keep) noexcept {
  return madvise(data, static_cast<size_t>(bytes), keep ? MADV_DOFORK : MADV_DONTFORK) == 0;
}

bool offer_pages(std::byte* data, int64_t bytes) noexcept {
#ifdef MADV_FREE
  return madvise(data, static_cast<size_t>(bytes), MADV_FREE) == 0;
#else
  static_cast<void>(data);
  static_cast<void>(bytes);
  return false;
#endif
}

}  // namespace artifex_devices
