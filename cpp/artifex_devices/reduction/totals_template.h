// SPDX-License-Identifier: Apache-2.0
// The loops of total_loops.h, compiled once for each instruction set: totals_*.cpp set ARTIFEX_TOTAL_LOOPS, the name of
// the table, and include this. All else is private to each object, as in base/copy_kernels_template.h; hence no inline
// function of the standard library is used.
//
// Every loop adds rows to a row of totals, element by element, which compilers vectorise without reordering anything. A
// dense run of numbers is taken as rows of 64, whose totals are added up pairwise.
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "artifex_devices/reduction/total_loops.h"

namespace artifex_devices {
namespace {

// Totals of a dense run: rows of 64 bytes, so that each line of the cache is read once and in order. Of float32, which
// AVX2 widens half a line at a time, two lines are faster.
template <class T>
constexpr int64_t kLanes = 64 / static_cast<int64_t>(sizeof(T));
template <>
constexpr int64_t kLanes<float> = 32;
constexpr int64_t kTile = 1024;       // columns whose totals stay in the first-level cache
constexpr int64_t kRowsAtOnce = 8;    // rows that are added to each other before they are added to the totals
constexpr int64_t kLeafRows = 64;     // more rows are halved: rounding errors then grow with the logarithm only
constexpr int64_t kLeavesAtOnce = 4;  // of a dense run; one stream of reads leaves half of an Intel core's rate unused

// The type in which eight numbers are added up: the next wider integers hold such a sum of 8 or 16 bits.
template <TotalKind kKind, class T, class Total>
struct Partial {
  using Type = Total;
};
template <>
struct Partial<TotalKind::kSum, int8_t, uint64_t> {
  using Type = int16_t;
};
template <>
struct Partial<TotalKind::kSum, uint8_t, uint64_t> {
  using Type = uint16_t;
};
template <>
struct Partial<TotalKind::kSum, int16_t, uint64_t> {
  using Type = int32_t;
};
template <>
struct Partial<TotalKind::kSum, uint16_t, uint64_t> {
  using Type = uint32_t;
};

template <TotalKind kKind, class V>
[[gnu::always_inline]] inline V join(V a, V b) noexcept {
  if constexpr (kKind == TotalKind::kProduct) {
    return static_cast<V>(a * b);
  } else {
    return static_cast<V>(a + b);
  }
}

template <TotalKind kKind, class V, class T>
[[gnu::always_inline]] inline V operand(T value) noexcept {
  const V wide = static_cast<V>(value);
  if constexpr (kKind == TotalKind::kAbsolute) return __builtin_fabs(wide);
  if constexpr (kKind == TotalKind::kSquares) return wide * wide;
  return wide;
}

// totals[j] = totals[j] op (rows 0 to 7 of column j), for kColumns columns, or `columns` where that is 0.
template <TotalKind kKind, class T, class Total, int64_t kColumns>
[[gnu::always_inline]] inline void add_eight(const T* __restrict from, int64_t stride, int64_t columns,
                                             Total* __restrict totals) noexcept {
  using V = typename Partial<kKind, T, Total>::Type;
  if constexpr (kColumns > 0) columns = kColumns;
  for (int64_t j = 0; j < columns; ++j) {
    const auto row = [&](int64_t r) { return operand<kKind, V>(from[r * stride + j]); };
    const V four = join<kKind>(join<kKind>(row(0), row(1)), join<kKind>(row(2), row(3)));
    const V more = join<kKind>(join<kKind>(row(4), row(5)), join<kKind>(row(6), row(7)));
    const auto total = static_cast<Total>(join<kKind>(four, more));
    totals[j] = join<kKind>(totals[j], total);
  }
}

template <TotalKind kKind, class T, class Total, int64_t kColumns>
[[gnu::always_inline]] inline void add_row(const T* __restrict from, int64_t columns,
                                           Total* __restrict totals) noexcept {
  if constexpr (kColumns > 0) columns = kColumns;
  for (int64_t j = 0; j < columns; ++j) {
    const auto total = operand<kKind, Total>(from[j]);
    totals[j] = join<kKind>(totals[j], total);
  }
}

// Asks for rows that are read soon. They may lie behind the end of the array: a request never faults.
template <class T>
[[gnu::always_inline]] inline void prefetch(const T* from, int64_t count) noexcept {
  constexpr int64_t kOfLine = 64 / static_cast<int64_t>(sizeof(T));
  for (int64_t i = 0; i < count; i += kOfLine) __builtin_prefetch(from + i);
}

// Totals of kLeavesAtOnce leaves of dense rows, which are read in turn while the next leaves are fetched.
template <TotalKind kKind, class T, class Total, int64_t kColumns>
[[gnu::noinline]] void total_leaves(const T* from, Total* totals) noexcept {
  constexpr int64_t kLeaf = kLeafRows * kColumns;
  constexpr int64_t kStep = kRowsAtOnce * kColumns;
  Total leaves[kLeavesAtOnce][kColumns];
  for (auto& leaf : leaves) {
    for (Total& each : leaf) each = kKind == TotalKind::kProduct ? 1 : 0;
  }
  for (int64_t i = 0; i < kLeaf; i += kStep) {
    for (int64_t leaf = 0; leaf < kLeavesAtOnce; ++leaf) {
      const T* const rows = from + leaf * kLeaf + i;
      prefetch(rows + kLeavesAtOnce * kLeaf, kStep);
      add_eight<kKind, T, Total, kColumns>(rows, kColumns, kColumns, leaves[leaf]);
    }
  }
  for (int64_t j = 0; j < kColumns; ++j) {
    totals[j] = join<kKind>(join<kKind>(leaves[0][j], leaves[1][j]), join<kKind>(leaves[2][j], leaves[3][j]));
  }
}

// Where more rows than `together` are halved: the first half is a multiple of that.
[[gnu::always_inline]] inline int64_t half_of(int64_t rows, int64_t together) noexcept {
  return (rows / 2 + together - 1) / together * together;
}

// Totals of the columns of any number of rows; at most kTile columns.
template <TotalKind kKind, class T, class Total, int64_t kColumns>
[[gnu::noinline]] void total_rows(const T* from, int64_t stride, int64_t rows, int64_t columns,
                                  Total* totals) noexcept {
  if constexpr (kColumns > 0) columns = kColumns;
  constexpr int64_t kTogether = kLeavesAtOnce * kLeafRows;
  if constexpr (kColumns > 0) {
    if (rows == kTogether) return total_leaves<kKind, T, Total, kColumns>(from, totals);
  }
  if (rows > kLeafRows) {
    const int64_t half = half_of(rows, rows > kTogether ? kTogether : kLeafRows);
    Total others[kColumns > 0 ? kColumns : kTile];  // NOLINT: written before it is read
    total_rows<kKind, T, Total, kColumns>(from, stride, half, columns, totals);
    total_rows<kKind, T, Total, kColumns>(from + half * stride, stride, rows - half, columns, others);
    for (int64_t j = 0; j < columns; ++j) totals[j] = join<kKind>(totals[j], others[j]);
    return;
  }
  for (int64_t j = 0; j < columns; ++j) totals[j] = kKind == TotalKind::kProduct ? 1 : 0;
  int64_t r = 0;
  for (; r + kRowsAtOnce <= rows; r += kRowsAtOnce) {
    add_eight<kKind, T, Total, kColumns>(from + r * stride, stride, columns, totals);
  }
  for (; r < rows; ++r) add_row<kKind, T, Total, kColumns>(from + r * stride, columns, totals);
}

// out[j] = totals[j] op totals[width + j] op ... of `groups` groups, pairwise. Overwrites the totals.
template <TotalKind kKind, class Total>
[[gnu::always_inline]] inline void join_groups(Total* totals, int64_t groups, int64_t width, Total* out) noexcept {
  while (groups > 1) {
    const int64_t half = (groups + 1) / 2;
    for (int64_t i = 0; i < (groups - half) * width; ++i) totals[i] = join<kKind>(totals[i], totals[half * width + i]);
    groups = half;
  }
  for (int64_t j = 0; j < width; ++j) out[j] = totals[j];
}

// Dense rows of at most kLanes / 2 numbers: several at a time, as one row of up to kLanes.
template <TotalKind kKind, class T, class Total>
[[gnu::noinline]] void total_short_rows(const T* from, int64_t rows, int64_t width, Total* out) noexcept {
  Total totals[kLanes<T>];  // NOLINT: written before it is read
  const int64_t together = width == 1 ? kLanes<T> : kLanes<T> / width;
  const int64_t columns = together * width;
  const int64_t long_rows = rows / together;
  const int64_t left = rows - long_rows * together;
  if (columns == kLanes<T>) {
    total_rows<kKind, T, Total, kLanes<T>>(from, kLanes<T>, long_rows, kLanes<T>, totals);
  } else {
    total_rows<kKind, T, Total, 0>(from, columns, long_rows, columns, totals);
  }
  add_row<kKind, T, Total, 0>(from + long_rows * columns, left * width, totals);
  join_groups<kKind>(totals, long_rows == 0 ? left : together, width, out);
}

/// Whether rows are adjacent and so short that several are taken as one.
template <class T>
[[gnu::always_inline]] inline bool has_short_rows(const TotalBox& box) noexcept {
  return box.inner <= kLanes<T> / 2 && (box.reduced_stride == box.inner || box.reduced == 1);
}

template <TotalKind kKind, class T, class Total>
void total(const void* from, const TotalBox& box, void* out) noexcept {
  const T* numbers = static_cast<const T*>(from);
  auto* totals = static_cast<Total*>(out);
  for (int64_t i = 0; i < box.outer; ++i, numbers += box.outer_stride, totals += box.inner) {
    if (has_short_rows<T>(box)) {
      total_short_rows<kKind, T, Total>(numbers, box.reduced, box.inner, totals);
      continue;
    }
    for (int64_t first = 0; first < box.inner; first += kTile) {
      const int64_t columns = box.inner - first < kTile ? box.inner - first : kTile;
      total_rows<kKind, T, Total, 0>(numbers + first, box.reduced_stride, box.reduced, columns, totals + first);
    }
  }
}

}  // namespace
}  // namespace artifex_devices

#include "artifex_devices/reduction/moments_template.h"

namespace artifex_devices {

// Signed overflow wraps, as in NumPy: totals are unsigned, which have the same bits.
template <TotalKind kKind, class T>
constexpr TotalLoop kWhole = total<kKind, T, uint64_t>;
template <TotalKind kKind, class T>
constexpr TotalLoop kReal = total<kKind, T, double>;

extern const TotalLoops ARTIFEX_TOTAL_LOOPS;
const TotalLoops ARTIFEX_TOTAL_LOOPS = {
    {{kWhole<TotalKind::kSum, int8_t>, kWhole<TotalKind::kSum, int16_t>, kWhole<TotalKind::kSum, int32_t>,
      kWhole<TotalKind::kSum, uint64_t>, kWhole<TotalKind::kSum, uint8_t>, kWhole<TotalKind::kSum, uint16_t>,
      kWhole<TotalKind::kSum, uint32_t>, kWhole<TotalKind::kSum, uint64_t>, kReal<TotalKind::kSum, float>,
      kReal<TotalKind::kSum, double>},
     {nullptr, nullptr, kWhole<TotalKind::kProduct, int32_t>, kWhole<TotalKind::kProduct, uint64_t>, nullptr, nullptr,
      kWhole<TotalKind::kProduct, uint32_t>, kWhole<TotalKind::kProduct, uint64_t>, kReal<TotalKind::kProduct, float>,
      kReal<TotalKind::kProduct, double>},
     {nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, kReal<TotalKind::kAbsolute, float>,
      kReal<TotalKind::kAbsolute, double>},
     {nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, kReal<TotalKind::kSquares, float>,
      kReal<TotalKind::kSquares, double>}},
    {kReal<TotalKind::kSum, int64_t>, kReal<TotalKind::kSum, uint64_t>},
    {moments_of<float>, moments_of<double>}};

}  // namespace artifex_devices
