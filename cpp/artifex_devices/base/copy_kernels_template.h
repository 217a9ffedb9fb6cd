// SPDX-License-Identifier: Apache-2.0 The loops of copies, compiled once for each instruction set: copy_kernels_*.cpp
// define ARTIFEX_COPY_KERNELS and include this. Everything except that table is private to each object, and no header
// with inline functions is included. Otherwise the linker could use AVX-512 code in the baseline (checked by
// tools/check_isa_symbols.py).
#include <cstddef>
#include <cstdint>
#include <utility>

#include "artifex_devices/base/copy_kernels.h"
#include "artifex_devices/base/register_bytes.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace artifex_devices {
namespace {

constexpr int64_t kLine = 64;

/// A vector register of kWidth bytes that holds elements of type T (GCC's vector extension).
template <class T, int kWidth>
struct Vector {
  typedef T Type __attribute__((vector_size(kWidth)));
};

/// `kBytes` bytes as one value.
template <int kBytes>
struct Value {
  using Type = typename Vector<uint8_t, kBytes>::Type;
};
template <>
struct Value<1> {
  using Type = uint8_t;
};
template <>
struct Value<2> {
  using Type = uint16_t;
};
template <>
struct Value<4> {
  using Type = uint32_t;
};
template <>
struct Value<8> {
  using Type = uint64_t;
};

template <int kBytes>
[[gnu::always_inline]] inline void move(std::byte* destination, const std::byte* source) {
  typename Value<kBytes>::Type value;
  __builtin_memcpy(&value, source, kBytes);
  __builtin_memcpy(destination, &value, kBytes);
}

[[gnu::always_inline]] inline void fetch(const std::byte* address) { __builtin_prefetch(address, 0, 3); }

// ---- lines past the cache

[[gnu::always_inline]] inline void stream_line(std::byte* destination, const std::byte* source) {
#if defined(__AVX512BW__)
  _mm512_stream_si512(reinterpret_cast<__m512i*>(destination), _mm512_loadu_si512(source));
#elif defined(__AVX2__)
  const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(source));
  const __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(source + 32));
  _mm256_stream_si256(reinterpret_cast<__m256i*>(destination), a);
  _mm256_stream_si256(reinterpret_cast<__m256i*>(destination + 32), b);
#elif defined(__x86_64__)
  __m128i parts[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) parts[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(source) + i);
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) _mm_stream_si128(reinterpret_cast<__m128i*>(destination) + i, parts[i]);
#elif defined(__aarch64__)
  Value<16>::Type parts[4];
  __builtin_memcpy(parts, source, kLine);
  asm volatile("stnp %q1, %q2, [%0]\n\tstnp %q3, %q4, [%0, #32]"
               :
               : "r"(destination), "w"(parts[0]), "w"(parts[1]), "w"(parts[2]), "w"(parts[3])
               : "memory");
#else
  __builtin_memcpy(destination, source, kLine);
#endif
}

void stream_lines(std::byte* d, const std::byte* s, int64_t lines, const std::byte* ahead) {
  if (ahead == nullptr) {
#pragma GCC unroll 4
    for (; lines > 0; --lines, d += kLine, s += kLine) stream_line(d, s);
    return;
  }
#pragma GCC unroll 2
  for (; lines > 0; --lines, d += kLine, s += kLine, ahead += kLine) {
    fetch(ahead);
    stream_line(d, s);
  }
}

void stream_rows(std::byte* d, int64_t d_stride, const std::byte* s, int64_t lines, int64_t count) {
  if (lines == 2) {
    for (; count > 0; --count, d += d_stride, s += 2 * kLine) {
      stream_line(d, s);
      stream_line(d + kLine, s + kLine);
    }
    return;
  }
  for (; count > 0; --count, d += d_stride, s += lines * kLine) {
    for (int64_t i = 0; i < lines; ++i) stream_line(d + i * kLine, s + i * kLine);
  }
}

// ---- runs

/// Runs of one length known at compile time.
template <int kRun>
void copy_known(std::byte* d, int64_t d_stride, const std::byte* s, int64_t s_stride, int64_t count, int64_t ahead) {
  if (ahead == 0) {
#pragma GCC unroll 4
    for (; count > 0; --count, d += d_stride, s += s_stride) move<kRun>(d, s);
    return;
  }
#pragma GCC unroll 2
  for (; count > 0; --count, d += d_stride, s += s_stride) {
    fetch(s + ahead);
    move<kRun>(d, s);
  }
}

/// Runs of kPart up to 2 * kPart bytes: two parts, which may overlap.
template <int kPart>
void copy_pairs(std::byte* d, int64_t d_stride, const std::byte* s, int64_t s_stride, int64_t run, int64_t count,
                int64_t ahead) {
  const int64_t last = run - kPart;
  for (; count > 0; --count, d += d_stride, s += s_stride) {
    if (ahead != 0) fetch(s + ahead);
    move<kPart>(d, s);
    move<kPart>(d + last, s + last);
  }
}

/// Longer runs: whole registers, of which the last may overlap its predecessor.
void copy_long(std::byte* d, int64_t d_stride, const std::byte* s, int64_t s_stride, int64_t run, int64_t count,
               int64_t ahead) {
  const int64_t last = run - kRegisterBytes;
  for (; count > 0; --count, d += d_stride, s += s_stride) {
    if (ahead != 0) {
      for (int64_t i = 0; i < run; i += kLine) fetch(s + ahead + i);
      fetch(s + ahead + run - 1);
    }
    int64_t i = 0;
#pragma GCC unroll 4
    for (; i < last; i += kRegisterBytes) move<kRegisterBytes>(d + i, s + i);
    move<kRegisterBytes>(d + last, s + last);
  }
}

/// Picks the units in register `kFrom` of kStep registers whose units are kStep apart, and adds them to `out`, which
/// holds the units of the earlier registers.
template <int kFrom, int kStep, class V, int... kIndex>
[[gnu::always_inline]] inline V pick(const V& out, const V& from, std::integer_sequence<int, kIndex...>) {
  constexpr int kCount = sizeof...(kIndex);
  return __builtin_shufflevector(out, from,
                                 (kIndex * kStep / kCount == kFrom ? kCount + kIndex * kStep % kCount : kIndex)...);
}

template <class V, int... kIndex>
[[gnu::always_inline]] inline V reversed(const V& from, std::integer_sequence<int, kIndex...>) {
  constexpr int kCount = sizeof...(kIndex);
  return __builtin_shufflevector(from, from, (kCount - 1 - kIndex)...);
}

/// Copies units that are kStep units apart (2 to 4) or reversed (-1) to dense units; returns the number copied. Reads
/// nothing after the last unit.
template <class T, int kStep>
int64_t copy_steps(std::byte* d, const std::byte* s, int64_t count) {
  constexpr int kWidth = kRegisterBytes;
  constexpr int64_t kUnit = sizeof(T);
  using V = typename Vector<T, kWidth>::Type;
  constexpr int64_t kCount = kWidth / kUnit;
  constexpr auto kIndices = std::make_integer_sequence<int, static_cast<int>(kCount)>();
  int64_t i = 0;
  if constexpr (kStep < 0) {
    for (; i + kCount <= count; i += kCount) {
      V value;
      __builtin_memcpy(&value, s - (i + kCount - 1) * kUnit, kWidth);
      value = reversed(value, kIndices);
      __builtin_memcpy(d + i * kUnit, &value, kWidth);
    }
  } else {
    for (; i + kCount < count; i += kCount) {
      V from[4];
#pragma GCC unroll 4
      for (int k = 0; k < kStep; ++k) __builtin_memcpy(&from[k], s + (i * kStep + k * kCount) * kUnit, kWidth);
      V out = pick<0, kStep>(from[0], from[0], kIndices);
      out = pick<1, kStep>(out, from[1], kIndices);
      if constexpr (kStep > 2) out = pick<2, kStep>(out, from[2], kIndices);
      if constexpr (kStep > 3) out = pick<3, kStep>(out, from[3], kIndices);
      __builtin_memcpy(d + i * kUnit, &out, kWidth);
    }
  }
  return i;
}

// SSE2 has no shuffle of units below 4 bytes: the compiler would extract them one by one.
#if defined(__x86_64__) && !defined(__AVX2__)
constexpr int64_t kLeastShuffled = 4;
#else
constexpr int64_t kLeastShuffled = 1;
#endif

template <class T>
void copy_units(std::byte* d, int64_t d_stride, const std::byte* s, int64_t s_stride, int64_t count, int64_t ahead) {
  constexpr int64_t kUnit = sizeof(T);
  if (kUnit >= kLeastShuffled && count * kUnit >= kRegisterBytes && d_stride == kUnit && ahead == 0) {
    int64_t done = 0;
    if (s_stride == 2 * kUnit) done = copy_steps<T, 2>(d, s, count);
    if (s_stride == 3 * kUnit) done = copy_steps<T, 3>(d, s, count);
    if (s_stride == 4 * kUnit) done = copy_steps<T, 4>(d, s, count);
    if (s_stride == -kUnit) done = copy_steps<T, -1>(d, s, count);
    d += done * d_stride;
    s += done * s_stride;
    count -= done;
  }
  copy_known<kUnit>(d, d_stride, s, s_stride, count, ahead);
}

void copy_runs(std::byte* d, int64_t d_stride, const std::byte* s, int64_t s_stride, int64_t run, int64_t count,
               int64_t ahead) {
  switch (run) {
    case 1:
      return copy_units<uint8_t>(d, d_stride, s, s_stride, count, ahead);
    case 2:
      return copy_units<uint16_t>(d, d_stride, s, s_stride, count, ahead);
    case 4:
      return copy_units<uint32_t>(d, d_stride, s, s_stride, count, ahead);
    case 8:
      return copy_units<uint64_t>(d, d_stride, s, s_stride, count, ahead);
    case 16:
      return copy_known<16>(d, d_stride, s, s_stride, count, ahead);
    default:
      break;
  }
  if (run < 4) return copy_pairs<2>(d, d_stride, s, s_stride, run, count, ahead);
  if (run < 8) return copy_pairs<4>(d, d_stride, s, s_stride, run, count, ahead);
  if (run < 16) return copy_pairs<8>(d, d_stride, s, s_stride, run, count, ahead);
  if constexpr (kRegisterBytes >= 32) {
    if (run <= 32) return copy_pairs<16>(d, d_stride, s, s_stride, run, count, ahead);
  }
  if constexpr (kRegisterBytes >= 64) {
    if (run < 64) return copy_pairs<32>(d, d_stride, s, s_stride, run, count, ahead);
  }
  copy_long(d, d_stride, s, s_stride, run, count, ahead);
}

// ---- transposes

/// Interleaves the lower (kHalf 0) or upper (kHalf 1) halves of two vectors: {a0, b0, a1, b1, ...}.
template <int kHalf, class V, int... kIndex>
[[gnu::always_inline]] inline void interleave(V& out, const V& a, const V& b, std::integer_sequence<int, kIndex...>) {
  constexpr int kCount = sizeof...(kIndex);
  out = __builtin_shufflevector(a, b, (kIndex / 2 + kIndex % 2 * kCount + kHalf * kCount / 2)...);
}

/// Transposes a square of kWidth / sizeof(T) rows in registers: log2(rows) rounds of interleaving row i with row
/// i + rows / 2.
template <class T, int kWidth>
[[gnu::always_inline]] inline void transpose_square(std::byte* destination, int64_t destination_stride,
                                                    const std::byte* source, int64_t row_stride) {
  using V = typename Vector<T, kWidth>::Type;
  constexpr int kCount = kWidth / static_cast<int>(sizeof(T));
  constexpr auto kIndices = std::make_integer_sequence<int, kCount>();
  V rows[kCount];
  V mixed[kCount];
#pragma GCC unroll 16
  for (int i = 0; i < kCount; ++i) __builtin_memcpy(&rows[i], source + i * row_stride, kWidth);
#pragma GCC unroll 4
  for (int round = 1; round < kCount; round *= 2) {
#pragma GCC unroll 8
    for (int i = 0; i < kCount / 2; ++i) {
      interleave<0>(mixed[2 * i], rows[i], rows[i + kCount / 2], kIndices);
      interleave<1>(mixed[2 * i + 1], rows[i], rows[i + kCount / 2], kIndices);
    }
#pragma GCC unroll 16
    for (int i = 0; i < kCount; ++i) rows[i] = mixed[i];
  }
#pragma GCC unroll 16
  for (int i = 0; i < kCount; ++i) __builtin_memcpy(destination + i * destination_stride, &rows[i], kWidth);
}

/// The same within each 16-byte lane of two vectors.
template <int kHalf, class V, int... kIndex>
[[gnu::always_inline]] inline void interleave_lanes(V& out, const V& a, const V& b,
                                                    std::integer_sequence<int, kIndex...>) {
  constexpr int kCount = sizeof...(kIndex);
  constexpr int kLane = 16 / static_cast<int>(sizeof(a[0]));
  out = __builtin_shufflevector(
      a, b, (kIndex / kLane * kLane + kIndex % kLane / 2 + kHalf * kLane / 2 + kIndex % 2 * kCount)...);
}

/// Transposes 16 / sizeof(T) rows of a whole register as squares, one in each lane. Each line of the source is read
/// only once.
template <class T>
[[gnu::always_inline]] inline void transpose_lanes(std::byte* destination, int64_t destination_stride,
                                                   const std::byte* source, int64_t row_stride) {
  using V = typename Vector<T, kRegisterBytes>::Type;
  constexpr int kRows = 16 / static_cast<int>(sizeof(T));
  constexpr int kLanes = kRegisterBytes / 16;
  constexpr auto kIndices = std::make_integer_sequence<int, kRows * kLanes>();
  V rows[kRows];
  V mixed[kRows];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) __builtin_memcpy(&rows[i], source + i * row_stride, kRegisterBytes);
#pragma GCC unroll 4
  for (int round = 1; round < kRows; round *= 2) {
#pragma GCC unroll 8
    for (int i = 0; i < kRows / 2; ++i) {
      interleave_lanes<0>(mixed[2 * i], rows[i], rows[i + kRows / 2], kIndices);
      interleave_lanes<1>(mixed[2 * i + 1], rows[i], rows[i + kRows / 2], kIndices);
    }
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) rows[i] = mixed[i];
  }
  typedef typename Value<16>::Type Lane;
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
    Lane lanes[kLanes];
    __builtin_memcpy(lanes, &rows[i], kRegisterBytes);
#pragma GCC unroll 4
    for (int lane = 0; lane < kLanes; ++lane) {
      __builtin_memcpy(destination + (lane * kRows + i) * destination_stride, &lanes[lane], 16);
    }
  }
}

/// Prefetches rows of `bytes` each into the second-level cache: they are read soon, but not next.
[[gnu::always_inline]] inline void fetch_rows(const std::byte* first, int64_t row_stride, int64_t rows, int64_t bytes) {
  for (int64_t i = 0; i < rows; ++i, first += row_stride) {
    for (int64_t c = 0; c < bytes; c += kLine) __builtin_prefetch(first + c, 0, 2);
  }
}

/// Transposes squares where they fit, the rest element by element. kWidth is the width of a square; 0: one in each
/// lane.
template <class T, int kWidth>
void transpose_squares(std::byte* destination, const std::byte* source, int64_t row_stride, int64_t rows,
                       int64_t columns, int64_t ahead) {
  constexpr int64_t kUnit = sizeof(T);
  constexpr int64_t kDown = (kWidth > 0 ? kWidth : 16) / kUnit;
  constexpr int64_t kAcross = (kWidth > 0 ? kWidth : kRegisterBytes) / kUnit;
  const int64_t whole_rows = rows - rows % kDown;
  const int64_t whole_columns = columns - columns % kAcross;
  for (int64_t r = 0; r < whole_rows; r += kDown) {
    if (ahead != 0) fetch_rows(source + ahead + r * row_stride, row_stride, kDown, columns * kUnit);
    for (int64_t c = 0; c < whole_columns; c += kAcross) {
      std::byte* const to = destination + (c * rows + r) * kUnit;
      const std::byte* const from = source + r * row_stride + c * kUnit;
      if constexpr (kWidth > 0) {
        transpose_square<T, kWidth>(to, rows * kUnit, from, row_stride);
      } else {
        transpose_lanes<T>(to, rows * kUnit, from, row_stride);
      }
    }
  }
  for (int64_t c = 0; c < columns; ++c) {
    std::byte* const to = destination + c * rows * kUnit;
    const std::byte* const from = source + c * kUnit;
    for (int64_t r = c < whole_columns ? whole_rows : 0; r < rows; ++r) {
      __builtin_memcpy(to + r * kUnit, from + r * row_stride, kUnit);
    }
  }
}

/// Interleaves two rows unit by unit; returns the number of finished columns.
template <class T>
int64_t zip_rows(std::byte* destination, const std::byte* source, int64_t row_stride, int64_t columns) {
  constexpr int64_t kUnit = sizeof(T);
  using V = typename Vector<T, kRegisterBytes>::Type;
  constexpr int64_t kCount = kRegisterBytes / kUnit;
  constexpr auto kIndices = std::make_integer_sequence<int, static_cast<int>(kCount)>();
  int64_t c = 0;
  for (; c + kCount <= columns; c += kCount) {
    V rows[2];
    V mixed[2];
    __builtin_memcpy(&rows[0], source + c * kUnit, kRegisterBytes);
    __builtin_memcpy(&rows[1], source + row_stride + c * kUnit, kRegisterBytes);
    interleave<0>(mixed[0], rows[0], rows[1], kIndices);
    interleave<1>(mixed[1], rows[0], rows[1], kIndices);
    __builtin_memcpy(destination + 2 * c * kUnit, mixed, 2 * kRegisterBytes);
  }
  return c;
}

/// Squares, except for two rows (tiles of two half-words) and for two dense columns (the inverse).
template <class T, int kWidth>
void transpose_units(std::byte* d, const std::byte* s, int64_t row_stride, int64_t rows, int64_t columns,
                     int64_t ahead) {
  constexpr int64_t kUnit = sizeof(T);
  if (rows == 2) {
    const int64_t done = zip_rows<T>(d, s, row_stride, columns);
    return transpose_squares<T, kWidth>(d + 2 * done * kUnit, s + done * kUnit, row_stride, rows, columns - done,
                                        ahead);
  }
  if (columns == 2 && row_stride == 2 * kUnit) {
    copy_units<T>(d, kUnit, s, row_stride, rows, 0);
    return copy_units<T>(d + rows * kUnit, kUnit, s + kUnit, row_stride, rows, 0);
  }
  transpose_squares<T, kWidth>(d, s, row_stride, rows, columns, ahead);
}

/// Units of 16 bytes: a few rows at a time, which fit into the cache even if their addresses agree in all low bits.
void transpose_16(std::byte* destination, const std::byte* source, int64_t row_stride, int64_t rows, int64_t columns,
                  int64_t ahead) {
  constexpr int64_t kUnit = 16;
  constexpr int64_t kRows = 4;
  const int64_t whole_rows = rows - rows % kRows;
  for (int64_t r = 0; r < whole_rows; r += kRows) {
    const std::byte* const from = source + r * row_stride;
    if (ahead != 0) fetch_rows(from + ahead, row_stride, kRows, columns * kUnit);
    for (int64_t c = 0; c < columns; ++c) {
#pragma GCC unroll 4
      for (int64_t i = 0; i < kRows; ++i) {
        move<kUnit>(destination + (c * rows + r + i) * kUnit, from + i * row_stride + c * kUnit);
      }
    }
  }
  for (int64_t r = whole_rows; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      move<kUnit>(destination + (c * rows + r) * kUnit, source + r * row_stride + c * kUnit);
    }
  }
}

void transpose(std::byte* d, const std::byte* s, int64_t row_stride, int64_t rows, int64_t columns, int64_t unit,
               int64_t ahead) {
  switch (unit) {
    case 1:
      return transpose_units<uint8_t, 0>(d, s, row_stride, rows, columns, ahead);
    case 2:
      return transpose_units<uint16_t, 0>(d, s, row_stride, rows, columns, ahead);
    case 4:
      return transpose_units<uint32_t, kRegisterBytes>(d, s, row_stride, rows, columns, ahead);
    case 8:
      return transpose_units<uint64_t, kRegisterBytes>(d, s, row_stride, rows, columns, ahead);
    default:
      return transpose_16(d, s, row_stride, rows, columns, ahead);
  }
}

}  // namespace

constinit const CopyKernels ARTIFEX_COPY_KERNELS = {stream_lines, copy_runs, stream_rows, transpose};

}  // namespace artifex_devices
