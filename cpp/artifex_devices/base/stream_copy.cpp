// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/base/stream_copy.h"

#include <algorithm>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace artifex_devices {
namespace {

constexpr int64_t kLine = 64;

void copy(std::byte* destination, const std::byte* source, int64_t bytes) noexcept {
  std::memcpy(destination, source, static_cast<size_t>(bytes));
}

#if defined(__x86_64__)

// Both copy `lines` whole lines to a destination at a line's start.
[[gnu::target("avx512f")]] void stream_lines_avx512(std::byte* d, const std::byte* s, int64_t lines) noexcept {
  for (; lines >= 4; lines -= 4, d += 4 * kLine, s += 4 * kLine) {
    const __m512i a = _mm512_loadu_si512(s);
    const __m512i b = _mm512_loadu_si512(s + kLine);
    const __m512i c = _mm512_loadu_si512(s + 2 * kLine);
    const __m512i e = _mm512_loadu_si512(s + 3 * kLine);
    _mm512_stream_si512(reinterpret_cast<__m512i*>(d), a);
    _mm512_stream_si512(reinterpret_cast<__m512i*>(d + kLine), b);
    _mm512_stream_si512(reinterpret_cast<__m512i*>(d + 2 * kLine), c);
    _mm512_stream_si512(reinterpret_cast<__m512i*>(d + 3 * kLine), e);
  }
  for (; lines > 0; --lines, d += kLine, s += kLine) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(d), _mm512_loadu_si512(s));
  }
}

[[gnu::target("avx2")]] void stream_lines_avx2(std::byte* d, const std::byte* s, int64_t lines) noexcept {
  for (; lines > 0; --lines, d += kLine, s += kLine) {
    const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(s));
    const __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(s + kLine / 2));
    _mm256_stream_si256(reinterpret_cast<__m256i*>(d), a);
    _mm256_stream_si256(reinterpret_cast<__m256i*>(d + kLine / 2), b);
  }
}

void stream_lines_sse2(std::byte* d, const std::byte* s, int64_t lines) noexcept {
  for (int64_t i = 0; i < lines * kLine; i += 16) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(d + i), _mm_loadu_si128(reinterpret_cast<const __m128i*>(s + i)));
  }
}

using StreamLines = void (*)(std::byte*, const std::byte*, int64_t) noexcept;

StreamLines best_stream_lines() noexcept {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f")) return stream_lines_avx512;
  if (__builtin_cpu_supports("avx2")) return stream_lines_avx2;
  return stream_lines_sse2;
}

// Chosen when the library is loaded: a guarded static could be in the making when another thread forks.
const StreamLines stream_lines = best_stream_lines();

#endif

}  // namespace

#if defined(__x86_64__)

void stream_copy(std::byte* destination, const std::byte* source, int64_t bytes) noexcept {
  const int64_t head = std::min(-static_cast<int64_t>(reinterpret_cast<uintptr_t>(destination)) & (kLine - 1), bytes);
  if (head > 0) copy(destination, source, head);
  const int64_t lines = (bytes - head) / kLine;
  stream_lines(destination + head, source + head, lines);
  const int64_t done = head + lines * kLine;
  if (done < bytes) copy(destination + done, source + done, bytes - done);
}

void stream_fence() noexcept { _mm_sfence(); }

#else

void stream_copy(std::byte* destination, const std::byte* source, int64_t bytes) noexcept {
  copy(destination, source, bytes);
}

void stream_fence() noexcept {}

#endif

}  // namespace artifex_devices
