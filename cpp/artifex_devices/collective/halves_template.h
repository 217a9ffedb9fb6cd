// SPDX-License-Identifier: Apache-2.0
// Loops over floats of 16 bits, which add up in float32; compiled once for each instruction set, as part of
// combine_template.h. A register of 16-bit numbers is two registers of float32, a Pair. Which number is in which half
// differs between formats and instruction sets (no number is moved where it need not be); results do not depend on it.
//
// Conversions have the same bits everywhere: to the nearest, ties to even; a NaN becomes a quiet one, of float16 with
// the upper bits of its payload (as vcvtps2ph), of bfloat16 without any (as Eigen and ml_dtypes).
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "artifex_devices/base/register_bytes.h"
#include "artifex_devices/base/stream_copy.h"

#if defined(__F16C__) || defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace artifex_devices {
namespace {

typedef uint32_t Words __attribute__((vector_size(kRegisterBytes)));
typedef float Floats __attribute__((vector_size(kRegisterBytes)));
constexpr int64_t kPairBytes = 2 * kRegisterBytes;
constexpr int64_t kPairNumbers = kRegisterBytes / 2;

struct Pair {
  Floats a;
  Floats b;
};

[[gnu::always_inline]] inline Words words(Floats value) noexcept { return (Words)value; }
[[gnu::always_inline]] inline Floats floats(Words value) noexcept { return (Floats)value; }

/// Even numbers are in `a`, odd ones in `b`: shifts alone take them apart.
struct BFloat16 {
  static constexpr bool kIsBrain = true;
  static constexpr bool kEvenOdd = true;

  [[gnu::always_inline]] static inline Pair widen(const void* from) noexcept {
    Words both;
    std::memcpy(&both, from, sizeof both);
    return {floats(both << 16), floats(both & 0xffff0000U)};
  }

  [[gnu::always_inline]] static inline void narrow(const Pair& pair, void* to) noexcept {
    const Words both = (rounded(pair.b) & 0xffff0000U) | (rounded(pair.a) >> 16);
    std::memcpy(to, &both, sizeof both);
  }

 private:
  [[gnu::always_inline]] static inline Words rounded(Floats value) noexcept {
    const Words bits = words(value);
    const Words nearest = bits + 0x7fffU + ((bits >> 16) & 1U);
    const Words nan = (bits & 0x80000000U) | 0x7fc00000U;
    return value != value ? nan : nearest;
  }
};

#if defined(__AVX512F__)

struct Float16 {
  static constexpr bool kIsBrain = false;
  static constexpr bool kEvenOdd = false;

  [[gnu::always_inline]] static inline Pair widen(const void* from) noexcept {
    __m256i halves[2];
    std::memcpy(halves, from, sizeof halves);
    return {(Floats)_mm512_cvtph_ps(halves[0]), (Floats)_mm512_cvtph_ps(halves[1])};
  }

  [[gnu::always_inline]] static inline void narrow(const Pair& pair, void* to) noexcept {
    constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
    const __m256i halves[2] = {_mm512_cvtps_ph((__m512)pair.a, kNearest), _mm512_cvtps_ph((__m512)pair.b, kNearest)};
    std::memcpy(to, halves, sizeof halves);
  }
};

#elif defined(__AVX2__) && defined(__F16C__)

struct Float16 {
  static constexpr bool kIsBrain = false;
  static constexpr bool kEvenOdd = false;

  [[gnu::always_inline]] static inline Pair widen(const void* from) noexcept {
    __m128i halves[2];
    std::memcpy(halves, from, sizeof halves);
    return {(Floats)_mm256_cvtph_ps(halves[0]), (Floats)_mm256_cvtph_ps(halves[1])};
  }

  [[gnu::always_inline]] static inline void narrow(const Pair& pair, void* to) noexcept {
    constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT;
    const __m128i halves[2] = {_mm256_cvtps_ph((__m256)pair.a, kNearest), _mm256_cvtps_ph((__m256)pair.b, kNearest)};
    std::memcpy(to, halves, sizeof halves);
  }
};

#else

struct Float16 {
  static constexpr bool kIsBrain = false;
  static constexpr bool kEvenOdd = true;

  [[gnu::always_inline]] static inline Pair widen(const void* from) noexcept {
    Words both;
    std::memcpy(&both, from, sizeof both);
    return {widened(both & 0xffffU), widened(both >> 16)};
  }

  [[gnu::always_inline]] static inline void narrow(const Pair& pair, void* to) noexcept {
    const Words both = narrowed(pair.b) << 16 | narrowed(pair.a);
    std::memcpy(to, &both, sizeof both);
  }

 private:
  [[gnu::always_inline]] static inline Floats widened(Words half) noexcept {
    constexpr uint32_t kBias = 112U << 23;  // between the exponents of float32 and float16
    const Words magnitude = (half & 0x7fffU) << 13;
    const Words exponent = magnitude & 0x0f800000U;
    const Words zero = magnitude - magnitude;
    const Words normal = magnitude + kBias + (exponent == 0x0f800000U ? zero + kBias : zero);
    const Words least = zero + (113U << 23);  // 2^-14; a number below it is its fraction times 2^-24
    const Words small = words(floats(magnitude + (113U << 23)) - floats(least));
    return floats((exponent == 0U ? small : normal) | (half & 0x8000U) << 16);
  }

  [[gnu::always_inline]] static inline Words narrowed(Floats value) noexcept {
    const Words bits = words(value);
    const Words magnitude = bits & 0x7fffffffU;
    const Words zero = magnitude - magnitude;
    const Words normal = (magnitude - (112U << 23) + 0xfffU + ((magnitude >> 13) & 1U)) >> 13;
    // 0.5 has its last bit where 2^-24 is: adding it rounds what is below 2^-14 there.
    const Words half = zero + (126U << 23);
    const Words small = words(floats(magnitude) + floats(half)) - half;
    const Words nan = 0x7e00U | (magnitude >> 13 & 0x3ffU);
    Words result = magnitude < (113U << 23) ? small : normal;
    result = magnitude >= (143U << 23) ? zero + 0x7c00U : result;
    result = magnitude > 0x7f800000U ? nan : result;
    return result | (bits >> 16 & 0x8000U);
  }
};

#endif

template <Step kStep>
[[gnu::always_inline]] inline void step(Pair& total, const Pair& next) noexcept {
  step<kStep>(total.a, next.a);
  step<kStep>(total.b, next.b);
}

constexpr int64_t kHalvesTile = kTileBytes / static_cast<int64_t>(sizeof(float));

/// The numbers of a pair in their order, and back.
template <class Format, int... kIndex>
[[gnu::always_inline]] inline void unpair(const Pair& pair, float* to, std::integer_sequence<int, kIndex...>) noexcept {
  constexpr int kCount = sizeof...(kIndex);
  Pair both = pair;
  if constexpr (Format::kEvenOdd) {
    both.a = __builtin_shufflevector(pair.a, pair.b, (kIndex / 2 + kIndex % 2 * kCount)...);
    both.b = __builtin_shufflevector(pair.a, pair.b, ((kIndex + kCount) / 2 + kIndex % 2 * kCount)...);
  }
  std::memcpy(to, &both, sizeof both);
}

template <class Format, int... kIndex>
[[gnu::always_inline]] inline Pair paired(const float* from, std::integer_sequence<int, kIndex...>) noexcept {
  Pair both;
  std::memcpy(&both, from, sizeof both);
  if constexpr (!Format::kEvenOdd) return both;
  return {__builtin_shufflevector(both.a, both.b, (2 * kIndex)...),
          __builtin_shufflevector(both.a, both.b, (2 * kIndex + 1)...)};
}

constexpr auto kIndices = std::make_integer_sequence<int, static_cast<int>(kPairNumbers / 2)>();

/// `wide` = sources[0] op sources[1] op ...; with kGoesOn, `wide` op sources[0] op .... kCount sources, or `count`
/// where that is 0. With `out` the result is rounded and written there instead. `numbers` is a multiple of
/// kPairNumbers.
template <Step kStep, class Format, int64_t kCount, bool kGoesOn>
void join_pairs(const uint16_t* const* sources, int64_t count, Pair* wide, uint16_t* out, int64_t numbers) noexcept {
  if constexpr (kCount > 0) count = kCount;
  for (int64_t i = 0; i < numbers; i += kPairNumbers, ++wide) {
    Pair total = kGoesOn ? *wide : Format::widen(sources[0] + i);
    for (int64_t s = kGoesOn ? 0 : 1; s < count; ++s) step<kStep>(total, Format::widen(sources[s] + i));
    if (out != nullptr) {
      Format::narrow(total, out + i);
    } else {
      *wide = total;
    }
  }
}

/// Start of the operands of a tile, which are separate arrays or rows of one array.
struct Operands {
  const void* const* arrays;  // null: rows
  int64_t offset;             // in each of the arrays
  const uint16_t* first;      // row
  int64_t distance;           // between rows

  const uint16_t* operator[](int64_t s) const noexcept {
    return arrays != nullptr ? static_cast<const uint16_t*>(arrays[s]) + offset : first + s * distance;
  }
};

/// The same for `count` operands and any `numbers` up to a tile. `out` may be null.
template <Step kStep, class Format>
[[gnu::noinline]] void join_halves(const Operands& operands, int64_t count, Pair* wide, uint16_t* out,
                                   int64_t numbers) noexcept {
  const int64_t whole = numbers - numbers % kPairNumbers;
  for (int64_t done = 0; done < count; done += kSources) {
    const uint16_t* sources[kSources] = {};
    const int64_t n = count - done < kSources ? count - done : kSources;
    for (int64_t s = 0; s < n; ++s) sources[s] = operands[done + s];
    uint16_t* const last = done + n == count ? out : nullptr;
    if (done > 0) {
      join_pairs<kStep, Format, 0, true>(sources, n, wide, last, whole);
    } else if (n == kSources) {
      join_pairs<kStep, Format, kSources, false>(sources, n, wide, last, whole);
    } else {
      join_pairs<kStep, Format, 0, false>(sources, n, wide, last, whole);
    }
  }
  if (whole == numbers) return;
  const auto bytes = static_cast<size_t>(numbers - whole) * sizeof(uint16_t);  // in registers that are not full
  uint16_t few[kPairNumbers] = {};
  std::memcpy(few, operands[0] + whole, bytes);
  Pair total = Format::widen(few);
  for (int64_t s = 1; s < count; ++s) {
    std::memcpy(few, operands[s] + whole, bytes);
    step<kStep>(total, Format::widen(few));
  }
  if (out == nullptr) {
    wide[whole / kPairNumbers] = total;
    return;
  }
  Format::narrow(total, few);
  std::memcpy(out + whole, few, bytes);
}

/// As `loop`, for floats of 16 bits.
template <Step kStep, class Format>
void loop_halves(const void* const* inputs, int64_t count, void* out, int64_t begin, int64_t end,
                 bool stream) noexcept {
  Pair wide[kHalvesTile / kPairNumbers];     // NOLINT: written before it is read
  alignas(64) uint16_t staged[kHalvesTile];  // NOLINT: the same
  for (int64_t from = begin; from < end; from += kHalvesTile) {
    const int64_t numbers = end - from < kHalvesTile ? end - from : kHalvesTile;
    uint16_t* const target = static_cast<uint16_t*>(out) + from;
    join_halves<kStep, Format>({inputs, from, nullptr, 0}, count, wide, stream ? staged : target, numbers);
    if (stream) {
      stream_copy(reinterpret_cast<std::byte*>(target), reinterpret_cast<const std::byte*>(staged),
                  numbers * static_cast<int64_t>(sizeof(uint16_t)));
    }
  }
}

// ---- reductions of one array along its dimensions

constexpr int64_t kTotals = 64;      // of a run: its number i goes to total i % 64
constexpr int64_t kRunBlock = 4096;  // longer runs are halved; rounding errors then grow with the logarithm only

/// Neutral element of the reduction. For a sum it is -0, because a sum of -0 must be -0.
template <Step kStep, class Format>
uint16_t neutral() noexcept {
  constexpr bool kIsBrain = Format::kIsBrain;
  if constexpr (kStep == Step::kSum) return 0x8000;
  if constexpr (kStep == Step::kProduct) return kIsBrain ? 0x3f80 : 0x3c00;
  if constexpr (kStep == Step::kMax) return kIsBrain ? 0xff80 : 0xfc00;
  return kIsBrain ? 0x7f80 : 0x7c00;
}

/// Dense numbers, at least one.
template <Step kStep, class Format>
[[gnu::noinline]] float fold_run(const uint16_t* from, int64_t count) noexcept {
  if (count > kRunBlock) {
    const int64_t half = count / 2 / kTotals * kTotals;
    float total = fold_run<kStep, Format>(from, half);
    step<kStep>(total, fold_run<kStep, Format>(from + half, count - half));
    return total;
  }
  constexpr int64_t kPairs = kTotals / kPairNumbers;
  const int64_t whole = count - count % kTotals;
  Pair pairs[kPairs];  // NOLINT: written before it is read
  uint16_t few[kTotals];
  const uint16_t* start = from;
  if (whole < count) {
    for (uint16_t& number : few) number = neutral<kStep, Format>();
    std::memcpy(few, from + whole, static_cast<size_t>(count - whole) * sizeof(uint16_t));
    if (whole == 0) start = few;
  }
#pragma GCC unroll 8
  for (int64_t k = 0; k < kPairs; ++k) pairs[k] = Format::widen(start + k * kPairNumbers);
  for (int64_t i = kTotals; i < whole; i += kTotals) {
#pragma GCC unroll 8
    for (int64_t k = 0; k < kPairs; ++k) step<kStep>(pairs[k], Format::widen(from + i + k * kPairNumbers));
  }
  if (whole > 0 && whole < count) {
    for (int64_t k = 0; k < kPairs; ++k) step<kStep>(pairs[k], Format::widen(few + k * kPairNumbers));
  }
  float totals[kTotals];  // NOLINT: written before it is read
  for (int64_t k = 0; k < kPairs; ++k) unpair<Format>(pairs[k], totals + k * kPairNumbers, kIndices);
  for (int64_t width = kTotals / 2; width > 0; width /= 2) {
    for (int64_t i = 0; i < width; ++i) step<kStep>(totals[i], totals[i + width]);
  }
  return totals[0];
}

/// out[j] = from[j] op from[columns + j] op ... of `rows` dense rows, at least one. Short rows are taken several at a
/// time, as one long one.
template <Step kStep, class Format>
[[gnu::noinline]] void fold_rows(const uint16_t* from, int64_t rows, int64_t columns, float* out) noexcept {
  Pair wide[kHalvesTile / kPairNumbers];       // NOLINT: written before it is read
  alignas(64) float totals[kHalvesTile] = {};  // NOLINT
  const auto fold_tile = [&](const uint16_t* start, int64_t count, int64_t distance, int64_t numbers) {
    join_halves<kStep, Format>({nullptr, 0, start, distance}, count, wide, nullptr, numbers);
    const int64_t pairs = (numbers + kPairNumbers - 1) / kPairNumbers;
    for (int64_t k = 0; k < pairs; ++k) unpair<Format>(wide[k], totals + k * kPairNumbers, kIndices);
  };
  const int64_t together = kHalvesTile / columns < rows ? kHalvesTile / columns : rows;
  if (together < 2) {
    for (int64_t first = 0; first < columns; first += kHalvesTile) {
      const int64_t numbers = columns - first < kHalvesTile ? columns - first : kHalvesTile;
      fold_tile(from + first, rows, columns, numbers);
      std::memcpy(out + first, totals, static_cast<size_t>(numbers) * sizeof(float));
    }
    return;
  }
  const auto add_up = [&](int64_t count, bool is_first) {
    for (int64_t row = 0; row < count; ++row) {
      const float* const next = totals + row * columns;
      if (is_first && row == 0) {
        std::memcpy(out, next, static_cast<size_t>(columns) * sizeof(float));
        continue;
      }
      for (int64_t j = 0; j < columns; ++j) step<kStep>(out[j], next[j]);
    }
  };
  const int64_t whole = rows / together;
  fold_tile(from, whole, together * columns, together * columns);
  add_up(together, true);
  if (const int64_t left = rows - whole * together; left > 0) {
    fold_tile(from + whole * together * columns, 1, 0, left * columns);
    add_up(left, false);
  }
}

template <Step kStep, class Format>
void fold_halves(const void* from, int64_t outer, int64_t reduced, int64_t inner, float* out) noexcept {
  const auto* numbers = static_cast<const uint16_t*>(from);
  for (int64_t i = 0; i < outer; ++i, numbers += reduced * inner, out += inner) {
    if (inner == 1) {
      *out = fold_run<kStep, Format>(numbers, reduced);
    } else {
      fold_rows<kStep, Format>(numbers, reduced, inner, out);
    }
  }
}

// ---- conversions

template <class Format>
void widen_halves(const void* from, int64_t count, float* to) noexcept {
  const auto* numbers = static_cast<const uint16_t*>(from);
  int64_t i = 0;
  for (; i + kPairNumbers <= count; i += kPairNumbers) unpair<Format>(Format::widen(numbers + i), to + i, kIndices);
  if (i == count) return;
  uint16_t few[kPairNumbers] = {};
  float wide[kPairNumbers];  // NOLINT: written before it is read
  std::memcpy(few, numbers + i, static_cast<size_t>(count - i) * sizeof(uint16_t));
  unpair<Format>(Format::widen(few), wide, kIndices);
  std::memcpy(to + i, wide, static_cast<size_t>(count - i) * sizeof(float));
}

template <class Format>
void narrow_halves(const float* from, int64_t count, void* to) noexcept {
  auto* numbers = static_cast<uint16_t*>(to);
  int64_t i = 0;
  for (; i + kPairNumbers <= count; i += kPairNumbers) Format::narrow(paired<Format>(from + i, kIndices), numbers + i);
  if (i == count) return;
  float wide[kPairNumbers] = {};
  uint16_t few[kPairNumbers];  // NOLINT: written before it is read
  std::memcpy(wide, from + i, static_cast<size_t>(count - i) * sizeof(float));
  Format::narrow(paired<Format>(wide, kIndices), few);
  std::memcpy(numbers + i, few, static_cast<size_t>(count - i) * sizeof(uint16_t));
}

template <class Format>
void divide_halves(void* data, int64_t count, float by) noexcept {
  auto* numbers = static_cast<uint16_t*>(data);
  const auto divide = [&](uint16_t* at) {
    const Pair pair = Format::widen(at);
    Format::narrow({pair.a / by, pair.b / by}, at);
  };
  int64_t i = 0;
  for (; i + kPairNumbers <= count; i += kPairNumbers) divide(numbers + i);
  if (i == count) return;
  uint16_t few[kPairNumbers] = {};
  std::memcpy(few, numbers + i, static_cast<size_t>(count - i) * sizeof(uint16_t));
  divide(few);
  std::memcpy(numbers + i, few, static_cast<size_t>(count - i) * sizeof(uint16_t));
}

}  // namespace
}  // namespace artifex_devices
