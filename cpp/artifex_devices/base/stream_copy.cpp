// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/base/stream_copy.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "artifex_devices/base/copy_kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace artifex_devices {
namespace {

constexpr int64_t kStreamLine = 64;

constinit std::atomic<int64_t> g_stream_bytes{int64_t{4} << 20};

void copy(std::byte* destination, const std::byte* source, int64_t bytes) noexcept {
  std::memcpy(destination, source, static_cast<size_t>(bytes));
}

}  // namespace

void stream_copy(std::byte* destination, const std::byte* source, int64_t bytes, const std::byte* ahead) noexcept {
  const int64_t head =
      std::min(-static_cast<int64_t>(reinterpret_cast<uintptr_t>(destination)) & (kStreamLine - 1), bytes);
  if (head > 0) copy(destination, source, head);
  const int64_t lines = (bytes - head) / kStreamLine;
  copy_kernels().stream_lines(destination + head, source + head, lines, ahead);
  const int64_t done = head + lines * kStreamLine;
  if (done < bytes) copy(destination + done, source + done, bytes - done);
}

int64_t stream_bytes() noexcept { return g_stream_bytes.load(std::memory_order_relaxed); }
void set_stream_bytes(int64_t bytes) noexcept { g_stream_bytes.store(bytes, std::memory_order_relaxed); }

void stream_fence() noexcept {
#if defined(__x86_64__)
  _mm_sfence();
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

}  // namespace artifex_devices
