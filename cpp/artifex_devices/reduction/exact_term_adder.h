// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "artifex_devices/reduction/exact_adder.h"

namespace artifex_devices {

inline constexpr int64_t kExactRowsAhead = 8;
inline constexpr int64_t kExactGroup = 4 * kExactColumns;  // columns at a time: rows of 4 KiB
inline constexpr int64_t kExactTermRows = 16;              // that fit in the first-level cache

/// A dimension, or several that follow each other in memory.
struct ExactLoop {
  int64_t size;
  int64_t stride;         // in elements
  int64_t others_stride;  // in elements
  int64_t state_stride;   // in states; 0 where reduced
};

/// Adds the terms of numbers T and others U.
template <class T, class U>
class TermAdder {
 public:
  TermAdder(ExactTerm term, std::span<ExactState> states)
      : term_(term),
        is_plain_(term == ExactTerm::kValue || term == ExactTerm::kAbsolute),
        adder_(states, is_plain_ && sizeof(T) < sizeof(double) ? 1 : 2) {}

  void add(std::span<const ExactLoop> loops, const T* from, const U* others, int64_t state) {
    if (loops.empty()) return add_run({1, 1, 0, 0}, from, others, state);
    const ExactLoop& loop = loops[0];
    if (loop.state_stride == 0 && loops.size() == 1) return add_run(loop, from, others, state);
    const bool has_columns = loops.back().state_stride != 0;
    if (has_columns &&
        std::ranges::all_of(loops.first(loops.size() - 1), [](auto& l) { return l.state_stride == 0; })) {
      return add_columns(loops, from, others, state);
    }
    if (has_columns && loop.state_stride == 0) {  // outer dimensions of the result first
      std::vector<ExactLoop> sorted(loops.begin(), loops.end());
      std::partition(sorted.begin(), sorted.end() - 1, [](const ExactLoop& each) { return each.state_stride != 0; });
      return add(sorted, from, others, state);
    }
    for (int64_t i = 0; i < loop.size; ++i) {
      add(loops.subspan(1), from + i * loop.stride, others + i * loop.others_stride, state + i * loop.state_stride);
    }
  }

  void normalize() noexcept { adder_.normalize(); }

  /// The columns to which `add_group` adds, up to kExactGroup at a time.
  ExactAdder& columns() noexcept { return adder_; }

  /// Adds columns first .. first + width of an array whose last loop is of the result; the other loops are reduced.
  void add_group(std::span<const ExactLoop> loops, const T* from, const U* others, int64_t first, int64_t width) {
    const ExactLoop& columns = loops.back();
    const int64_t row_stride = loops.size() > 1 ? loops[loops.size() - 2].stride : 0;
    Rows rows{{}, {}, 0, kExactRowsAhead * row_stride, columns.others_stride, width};
    const auto each_row = [&](auto& self, std::span<const ExactLoop> outer, const T* row, const U* other) -> void {
      if (outer.empty()) {
        rows.from[static_cast<size_t>(rows.count)] = row;
        rows.others[static_cast<size_t>(rows.count)] = other;
        if (++rows.count == kExactRows) add_rows(rows);
        return;
      }
      for (int64_t i = 0; i < outer[0].size; ++i) {
        self(self, outer.subspan(1), row + i * outer[0].stride, other + i * outer[0].others_stride);
      }
    };
    each_row(each_row, loops.first(loops.size() - 1), from + first, others + first * columns.others_stride);
    add_rows(rows);
  }

 private:
  int64_t convert(const T* from, const U* others, int64_t others_stride, int64_t count, int64_t ahead,
                  double* to) const noexcept {
    const auto kind = static_cast<size_t>(term_);
    if constexpr (sizeof(T) == sizeof(double)) {
      return kernels_.convert64[kind](from, others, others_stride, count, ahead, to);
    } else if constexpr (sizeof(U) == sizeof(double)) {
      return kernels_.deviation32(from, others, others_stride, count, ahead, to);
    } else {
      return kernels_.convert32[kind](from, others, others_stride, count, ahead, to);
    }
  }

  // The loop is reduced.
  void add_run(const ExactLoop& loop, const T* from, const U* others, int64_t state) noexcept {
    alignas(64) std::array<double, kExactRun> terms;  // NOLINT: written before it is read
    for (int64_t done = 0; done < loop.size; done += kExactRun) {
      const int64_t count = std::min(kExactRun, loop.size - done);
      if constexpr (sizeof(T) == sizeof(double)) {
        if (term_ == ExactTerm::kValue) {
          adder_.add_run(from + done, count, kernels_.largest(from + done, count, kExactRun), state);
          continue;
        }
      } else if (is_plain_) {
        const double sum = kernels_.near32[term_ == ExactTerm::kAbsolute](from + done, count);
        if (!std::isnan(sum)) {
          adder_.add_sum(sum, state);
          continue;
        }
      }
      const int64_t bits =
          convert(from + done, others + done * loop.others_stride, loop.others_stride, count, kExactRun, terms.data());
      adder_.add_run(terms.data(), count, bits, state);
    }
  }

  // The last loop is of the result, consecutive in memory; the others are reduced.
  void add_columns(std::span<const ExactLoop> loops, const T* from, const U* others, int64_t state) {
    const ExactLoop& columns = loops.back();
    for (int64_t first = 0; first < columns.size; first += kExactGroup) {
      const int64_t width = std::min(kExactGroup, columns.size - first);
      adder_.start_columns(state + first * columns.state_stride, columns.state_stride, width);
      add_group(loops, from, others, first, width);
      adder_.flush();
    }
  }

  struct Rows {
    std::array<const T*, kExactRows> from;
    std::array<const U*, kExactRows> others;
    int64_t count;
    int64_t ahead;  // to a row that is read soon
    int64_t others_stride;
    int64_t width;
  };

  // Adds rows of up to kExactGroup columns to columns, and removes them.
  void add_rows(Rows& rows) {
    for (int64_t first = 0; rows.count > 0 && first < rows.width; first += kExactColumns) {
      add_strip(rows, std::min(kExactColumns, rows.width - first), first / kExactColumns);
      for (int64_t row = 0; row < rows.count; ++row) {
        rows.from[static_cast<size_t>(row)] += kExactColumns;
        rows.others[static_cast<size_t>(row)] += kExactColumns * rows.others_stride;
      }
    }
    rows.count = 0;
  }

  void add_strip(const Rows& rows, int64_t width, int64_t strip) {
    if constexpr (sizeof(T) == sizeof(double)) {
      if (term_ == ExactTerm::kValue) {
        int64_t bits = 0;
        for (int64_t row = 0; row < rows.count; ++row) {
          bits = std::max(bits, kernels_.largest(rows.from[static_cast<size_t>(row)], width, rows.ahead));
        }
        return adder_.add_rows(rows.from.data(), rows.count, bits, strip);
      }
    } else if (is_plain_) {
      double* const sums = adder_.next_rows(strip, 1);
      if (kernels_.near_columns32[term_ == ExactTerm::kAbsolute](rows.from.data(), rows.count, width, rows.ahead,
                                                                 sums)) {
        return adder_.keep_rows(strip, 1);
      }
    }
    terms_.resize(static_cast<size_t>(kExactTermRows * kExactColumns));
    std::array<const double*, kExactTermRows> terms = {};
    for (int64_t first = 0; first < rows.count; first += kExactTermRows) {
      const int64_t count = std::min(kExactTermRows, rows.count - first);
      int64_t bits = 0;
      for (int64_t row = 0; row < count; ++row) {
        const auto r = static_cast<size_t>(first + row);
        double* const to = terms_.data() + row * kExactColumns;
        terms[static_cast<size_t>(row)] = to;
        bits = std::max(bits, convert(rows.from[r], rows.others[r], rows.others_stride, width, rows.ahead, to));
      }
      adder_.add_rows(terms.data(), count, bits, strip);
    }
  }

  const ExactKernels& kernels_ = exact_kernels();
  ExactTerm term_;
  bool is_plain_;
  ExactAdder adder_;
  std::vector<double> terms_;
};

}  // namespace artifex_devices
