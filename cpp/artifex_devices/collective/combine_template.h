// SPDX-License-Identifier: Apache-2.0
// The loops of combine_loops.h, compiled once for each instruction set: combine_*.cpp set ARTIFEX_COMBINE_LOOPS, the
// name of the table, and include this. All else is private to each object, as in base/copy_kernels_template.h; hence no
// inline function of the standard library is used.
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "artifex_devices/base/register_bytes.h"
#include "artifex_devices/base/stream_copy.h"
#include "artifex_devices/collective/combine_loops.h"

namespace artifex_devices {
namespace {

// A tile of the result stays in the first-level cache while all inputs are added to it, eight at a time: a processor
// follows that many streams, and runs of this length are worth following.
constexpr int64_t kTileBytes = int64_t{16} << 10;
constexpr int64_t kSources = 8;

enum class Step { kSum, kProduct, kMax, kMin };

// One step for vectors and for single numbers. Always inlined, to keep vectors in registers.
template <Step kStep, class V>
[[gnu::always_inline]] inline void step(V& total, const V& next) noexcept {
  if constexpr (kStep == Step::kSum) {
    total = static_cast<V>(total + next);
  } else if constexpr (kStep == Step::kProduct) {
    if constexpr (std::is_integral_v<V> && sizeof(V) < sizeof(unsigned)) {
      total = static_cast<V>(static_cast<unsigned>(total) * next);  // as an int it could overflow
    } else {
      total = static_cast<V>(total * next);
    }
  } else if constexpr (kStep == Step::kMax) {
    total = ((total >= next) | (total != total)) ? total : next;  // a NaN stays, and comes in
  } else {
    total = ((total <= next) | (total != total)) ? total : next;
  }
}

// `total` = sources[0] op sources[1] op ...; kCount sources, or `count` where that is 0. `total` may be sources[0].
template <Step kStep, class T, int64_t kCount>
void join(const T* const* sources, int64_t count, T* total, int64_t elements) noexcept {
  typedef T Vector __attribute__((vector_size(kRegisterBytes)));
  constexpr auto kLanes = static_cast<int64_t>(sizeof(Vector) / sizeof(T));
  if constexpr (kCount > 0) count = kCount;
  int64_t i = 0;
  for (; i + kLanes <= elements; i += kLanes) {
    Vector sum;
    Vector next;
    std::memcpy(&sum, sources[0] + i, sizeof sum);
    for (int64_t s = 1; s < count; ++s) {
      std::memcpy(&next, sources[s] + i, sizeof next);
      step<kStep>(sum, next);
    }
    std::memcpy(total + i, &sum, sizeof sum);
  }
  for (; i < elements; ++i) {
    T sum = sources[0][i];
    for (int64_t s = 1; s < count; ++s) step<kStep>(sum, sources[s][i]);
    total[i] = sum;
  }
}

template <Step kStep, class T>
void loop(const void* const* inputs, int64_t count, void* out, int64_t begin, int64_t end, bool stream) noexcept {
  constexpr int64_t kTile = kTileBytes / static_cast<int64_t>(sizeof(T));
  alignas(64) T staged[kTile];  // NOLINT: written before it is read
  for (int64_t from = begin; from < end; from += kTile) {
    const int64_t elements = end - from < kTile ? end - from : kTile;
    T* const target = static_cast<T*>(out) + from;
    T* const total = stream ? staged : target;
    for (int64_t done = 0; done < count;) {
      const T* sources[kSources] = {};
      int64_t n = 0;
      if (done > 0) sources[n++] = total;
      while (n < kSources && done < count) sources[n++] = static_cast<const T*>(inputs[done++]) + from;
      if (n == kSources) {
        join<kStep, T, kSources>(sources, n, total, elements);
      } else {
        join<kStep, T, 0>(sources, n, total, elements);
      }
    }
    if (stream) {
      stream_copy(reinterpret_cast<std::byte*>(target), reinterpret_cast<const std::byte*>(total),
                  elements * static_cast<int64_t>(sizeof(T)));
    }
  }
}

}  // namespace
}  // namespace artifex_devices

#include "artifex_devices/collective/halves_template.h"

namespace artifex_devices {

// Signed overflow wraps, as in NumPy; on unsigned numbers that is defined, and the bits are the same.
#define ARTIFEX_WRAPPING(step)                                                                  \
  {loop<step, uint8_t>, loop<step, uint16_t>, loop<step, uint32_t>,       loop<step, uint64_t>, \
   loop<step, uint8_t>, loop<step, uint16_t>, loop<step, uint32_t>,       loop<step, uint64_t>, \
   loop<step, float>,   loop<step, double>,   loop_halves<step, Float16>, loop_halves<step, BFloat16>}
#define ARTIFEX_ORDERED(step)                                                                   \
  {loop<step, int8_t>,  loop<step, int16_t>,  loop<step, int32_t>,        loop<step, int64_t>,  \
   loop<step, uint8_t>, loop<step, uint16_t>, loop<step, uint32_t>,       loop<step, uint64_t>, \
   loop<step, float>,   loop<step, double>,   loop_halves<step, Float16>, loop_halves<step, BFloat16>}
#define ARTIFEX_FOLDS(step) {fold_halves<step, Float16>, fold_halves<step, BFloat16>}

extern const CombineLoops ARTIFEX_COMBINE_LOOPS;
const CombineLoops ARTIFEX_COMBINE_LOOPS = {
    {ARTIFEX_WRAPPING(Step::kSum), ARTIFEX_WRAPPING(Step::kProduct), ARTIFEX_ORDERED(Step::kMax),
     ARTIFEX_ORDERED(Step::kMin)},
    {ARTIFEX_FOLDS(Step::kSum), ARTIFEX_FOLDS(Step::kProduct), ARTIFEX_FOLDS(Step::kMax), ARTIFEX_FOLDS(Step::kMin)},
    {widen_halves<Float16>, widen_halves<BFloat16>},
    {narrow_halves<Float16>, narrow_halves<BFloat16>},
    {divide_halves<Float16>, divide_halves<BFloat16>}};

#undef ARTIFEX_WRAPPING
#undef ARTIFEX_ORDERED
#undef ARTIFEX_FOLDS

}  // namespace artifex_devices
