// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/measure/stream.h"

#include <cstddef>

#include "artifex_devices/base/isa.h"
#include "artifex_devices/base/stream_copy.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace artifex_devices {
namespace {

constexpr std::array<std::string_view, kStreamKernels.size()> kStreamNames = {"copy", "copy, streaming stores", "triad",
                                                                              "triad, streaming stores"};
constexpr double kScale = 3.0;

using Copy = void (*)(const double*, double*, int64_t) noexcept;
using Triad = void (*)(const double*, const double*, double*, int64_t) noexcept;

struct Loops {
  Copy copy;
  Triad triad;
  Triad triad_streaming;
};

#if defined(__x86_64__)

// Eight elements at a time; STREAMING chooses the stores.
template <bool STREAMING>
[[gnu::target("avx512f")]] void triad_avx512(const double* a, const double* b, double* c, int64_t count) noexcept {
  const __m512d scale = _mm512_set1_pd(kScale);
  for (int64_t i = 0; i < count; i += 8) {
    const __m512d value = _mm512_fmadd_pd(scale, _mm512_load_pd(b + i), _mm512_load_pd(a + i));
    STREAMING ? _mm512_stream_pd(c + i, value) : _mm512_store_pd(c + i, value);
  }
}

template <bool STREAMING>
[[gnu::target("avx")]] void triad_avx(const double* a, const double* b, double* c, int64_t count) noexcept {
  const __m256d scale = _mm256_set1_pd(kScale);
  for (int64_t i = 0; i < count; i += 4) {
    const __m256d value = _mm256_add_pd(_mm256_mul_pd(scale, _mm256_load_pd(b + i)), _mm256_load_pd(a + i));
    STREAMING ? _mm256_stream_pd(c + i, value) : _mm256_store_pd(c + i, value);
  }
}

template <bool STREAMING>
void triad_sse2(const double* a, const double* b, double* c, int64_t count) noexcept {
  const __m128d scale = _mm_set1_pd(kScale);
  for (int64_t i = 0; i < count; i += 2) {
    const __m128d value = _mm_add_pd(_mm_mul_pd(scale, _mm_load_pd(b + i)), _mm_load_pd(a + i));
    STREAMING ? _mm_stream_pd(c + i, value) : _mm_store_pd(c + i, value);
  }
}

[[gnu::target("avx512f")]] void copy_avx512(const double* a, double* c, int64_t count) noexcept {
  for (int64_t i = 0; i < count; i += 8) _mm512_store_pd(c + i, _mm512_load_pd(a + i));
}

[[gnu::target("avx")]] void copy_avx(const double* a, double* c, int64_t count) noexcept {
  for (int64_t i = 0; i < count; i += 4) _mm256_store_pd(c + i, _mm256_load_pd(a + i));
}

void copy_sse2(const double* a, double* c, int64_t count) noexcept {
  for (int64_t i = 0; i < count; i += 2) _mm_store_pd(c + i, _mm_load_pd(a + i));
}

constexpr Loops loops_avx512 = {copy_avx512, triad_avx512<false>, triad_avx512<true>};
constexpr Loops loops_avx2 = {copy_avx, triad_avx<false>, triad_avx<true>};
constexpr Loops loops_baseline = {copy_sse2, triad_sse2<false>, triad_sse2<true>};

#else

void plain_copy(const double* a, double* c, int64_t count) noexcept {
  for (int64_t i = 0; i < count; ++i) c[i] = a[i];
}

void plain_triad(const double* a, const double* b, double* c, int64_t count) noexcept {
  for (int64_t i = 0; i < count; ++i) c[i] = a[i] + kScale * b[i];
}

constexpr Loops loops_baseline = {plain_copy, plain_triad, plain_triad};

#endif

// Chosen when the library is loaded: a fork could interrupt the initialization of a guarded static.
const Loops g_loops = *ARTIFEX_VARIANT(const Loops*, supported_isas().back(), &loops);

}  // namespace

std::string_view to_string(StreamKernel kernel) noexcept {
  const auto index = static_cast<size_t>(kernel);
  return index < kStreamNames.size() ? kStreamNames[index] : std::string_view("unknown");
}

bool has_streaming_stores() noexcept {
#if defined(__x86_64__)
  return true;
#else
  return false;
#endif
}

void run_stream(StreamKernel kernel, const double* a, const double* b, double* c, int64_t count) noexcept {
  switch (kernel) {
    case StreamKernel::kCopy:
      g_loops.copy(a, c, count);
      return;
    case StreamKernel::kCopyStreaming:
      stream_copy(reinterpret_cast<std::byte*>(c), reinterpret_cast<const std::byte*>(a), count * 8);
      stream_fence();
      return;
    case StreamKernel::kTriad:
      g_loops.triad(a, b, c, count);
      return;
    case StreamKernel::kTriadStreaming:
      g_loops.triad_streaming(a, b, c, count);
      stream_fence();
      return;
  }
}

}  // namespace artifex_devices
