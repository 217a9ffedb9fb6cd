// SPDX-License-Identifier: Apache-2.0
// Means and sums of squared differences from them, as part of totals_template.h. A few rows at a time are read twice,
// from the first-level cache.
#include <cstdint>

#include "artifex_devices/reduction/moment_join.h"

namespace artifex_devices {
namespace {

// Of at least one row, and at most kTile columns.
template <class T, int64_t kColumns>
[[gnu::noinline]] void row_moments(const T* __restrict from, int64_t stride, int64_t rows, int64_t columns,
                                   const Moments& moments) noexcept {
  if constexpr (kColumns > 0) columns = kColumns;
  if (rows > kLeafRows) {
    const int64_t half = half_of(rows, kLeafRows);
    constexpr int64_t kApart = kColumns > 0 ? kColumns : kTile;
    double others[3 * kApart];  // NOLINT: written before it is read
    row_moments<T, kColumns>(from, stride, half, columns, moments);
    row_moments<T, kColumns>(from + half * stride, stride, rows - half, columns, {others, kApart});
    return join_moments(moments, half, {others, kApart}, rows - half, columns);
  }
  double* __restrict const means = moments.means;
  double* __restrict const rests = moments.rests();
  double* __restrict const squares = moments.squares();
  total_rows<TotalKind::kSum, T, double, kColumns>(from, stride, rows, columns, means);
  const auto count = static_cast<double>(rows);
  for (int64_t j = 0; j < columns; ++j) {
    means[j] /= count;
    rests[j] = 0;
    squares[j] = 0;
  }
  int64_t r = 0;
  for (; r + 4 <= rows; r += 4) {
    if constexpr (kColumns > 0) prefetch(from + (kLeafRows + r) * kColumns, 4 * kColumns);  // the next leaf
    for (int64_t j = 0; j < columns; ++j) {
      const auto row = [&](int64_t k) { return static_cast<double>(from[(r + k) * stride + j]) - means[j]; };
      const double a = row(0);
      const double b = row(1);
      const double c = row(2);
      const double d = row(3);
      rests[j] += (a + b) + (c + d);
      squares[j] += (a * a + b * b) + (c * c + d * d);
    }
  }
  for (; r < rows; ++r) {
    for (int64_t j = 0; j < columns; ++j) {
      const double difference = static_cast<double>(from[r * stride + j]) - means[j];
      rests[j] += difference;
      squares[j] += difference * difference;
    }
  }
  for (int64_t j = 0; j < columns; ++j) {
    const double sum = rests[j];
    rests[j] = sum / count;
    const double square = squares[j] - sum * rests[j];
    squares[j] = square < 0 ? 0 : square;
  }
}

// As total_short_rows.
template <class T>
[[gnu::noinline]] void short_row_moments(const T* from, int64_t rows, int64_t width, const Moments& out) noexcept {
  double numbers[3 * kLanes<T>] = {};
  double singles[3 * kLanes<T>] = {};
  int64_t counts[kLanes<T>];  // NOLINT: written before it is read
  const int64_t together = width == 1 ? kLanes<T> : kLanes<T> / width;
  const int64_t columns = together * width;
  const int64_t long_rows = rows / together;
  const int64_t left = rows - long_rows * together;
  const Moments moments{numbers, kLanes<T>};
  const Moments of_singles{long_rows == 0 ? numbers : singles, kLanes<T>};
  for (int64_t i = 0; i < left * width; ++i) of_singles.means[i] = static_cast<double>(from[long_rows * columns + i]);
  if (long_rows > 0) {
    if (columns == kLanes<T>) {
      row_moments<T, kLanes<T>>(from, columns, long_rows, columns, moments);
    } else {
      row_moments<T, 0>(from, columns, long_rows, columns, moments);
    }
    join_moments(moments, long_rows, of_singles, 1, left * width);
  }
  const int64_t groups = long_rows == 0 ? left : together;
  for (int64_t g = 0; g < groups; ++g) counts[g] = long_rows + (g < left ? 1 : 0);
  join_groups_of_moments(moments, counts, groups, width, width);
  for (int64_t j = 0; j < width; ++j) {
    out.means[j] = moments.means[j];
    out.rests()[j] = moments.rests()[j];
    out.squares()[j] = moments.squares()[j];
  }
}

template <class T>
void moments_of(const void* from, const TotalBox& box, double* means, int64_t apart) noexcept {
  const T* numbers = static_cast<const T*>(from);
  for (int64_t i = 0; i < box.outer; ++i, numbers += box.outer_stride) {
    const Moments out{means + i * box.inner, apart};
    if (has_short_rows<T>(box)) {
      short_row_moments(numbers, box.reduced, box.inner, out);
      continue;
    }
    for (int64_t first = 0; first < box.inner; first += kTile) {
      const int64_t columns = box.inner - first < kTile ? box.inner - first : kTile;
      row_moments<T, 0>(numbers + first, box.reduced_stride, box.reduced, columns, out.at(first));
    }
  }
}

}  // namespace
}  // namespace artifex_devices
