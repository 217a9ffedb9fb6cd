// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/reduction/exact_sum.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include "artifex_devices/base/isa.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/reduction/exact_adder.h"

namespace artifex_devices {

const ExactKernels& exact_kernels() noexcept {
  return *ARTIFEX_VARIANT(const ExactKernels*, active_isa(), &exact_kernels);
}

RoundingFormat rounding_format(DType dtype) noexcept {
  switch (dtype) {
    case DType::kFloat64:
      return {53, -1074, false};
    case DType::kFloat32:
      return {24, -149, false};
    case DType::kFloat16:
      return {11, -24, false};
    case DType::kBFloat16:
      return {8, -133, false};
    default:
      return {24, -149, true};
  }
}

namespace {

constexpr int64_t kRowsAhead = 8;
constexpr int64_t kStrips = 4;          // of columns at a time: rows of 4 KiB
constexpr int64_t kConvertedRows = 16;  // that fit in the first-level cache

/// A dimension, or several that follow each other in memory.
struct Loop {
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

  void add(std::span<const Loop> loops, const T* from, const U* others, int64_t state) {
    if (loops.empty()) return add_run({1, 1, 0, 0}, from, others, state);
    const Loop& loop = loops[0];
    if (loop.state_stride == 0 && loops.size() == 1) return add_run(loop, from, others, state);
    const bool has_columns = loops.back().state_stride != 0;
    if (has_columns &&
        std::ranges::all_of(loops.first(loops.size() - 1), [](auto& l) { return l.state_stride == 0; })) {
      return add_columns(loops, from, others, state);
    }
    if (has_columns && loop.state_stride == 0) {  // outer dimensions of the result first
      std::vector<Loop> sorted(loops.begin(), loops.end());
      std::partition(sorted.begin(), sorted.end() - 1, [](const Loop& each) { return each.state_stride != 0; });
      return add(sorted, from, others, state);
    }
    for (int64_t i = 0; i < loop.size; ++i) {
      add(loops.subspan(1), from + i * loop.stride, others + i * loop.others_stride, state + i * loop.state_stride);
    }
  }

  void normalize() noexcept { adder_.normalize(); }

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
  void add_run(const Loop& loop, const T* from, const U* others, int64_t state) noexcept {
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
  void add_columns(std::span<const Loop> loops, const T* from, const U* others, int64_t state) {
    const Loop& columns = loops.back();
    const int64_t row_stride = loops.size() > 1 ? loops[loops.size() - 2].stride : 0;
    for (int64_t first = 0; first < columns.size; first += kStrips * kExactColumns) {
      const int64_t width = std::min(kStrips * kExactColumns, columns.size - first);
      adder_.start_columns(state + first * columns.state_stride, columns.state_stride, width);
      Rows rows{{}, {}, 0, kRowsAhead * row_stride, columns.others_stride, width};
      const auto each_row = [&](auto& self, std::span<const Loop> outer, const T* row, const U* other) -> void {
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

  // Adds rows of up to kStrips strips to columns, and removes them.
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
      double* const sums = adder_.next_row(strip);
      if (kernels_.near_columns32[term_ == ExactTerm::kAbsolute](rows.from.data(), rows.count, width, rows.ahead,
                                                                 sums)) {
        return adder_.keep_row(strip);
      }
    }
    terms_.resize(static_cast<size_t>(kConvertedRows * kExactColumns));
    std::array<const double*, kConvertedRows> terms = {};
    for (int64_t first = 0; first < rows.count; first += kConvertedRows) {
      const int64_t count = std::min(kConvertedRows, rows.count - first);
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

/// The loops of an array, the widest stride first, without dimensions of one element.
std::vector<Loop> loops_of(const HostView& array, const HostView& others, std::span<const bool> is_reduced) {
  const int64_t bytes = itemsize(array.dtype);
  const int64_t others_bytes = itemsize(others.dtype);
  std::vector<Loop> loops;
  int64_t states = 1;
  for (int64_t d = array.shape.size() - 1; d >= 0; --d) {
    const bool is_sum = is_reduced[static_cast<size_t>(d)];
    if (array.shape[d] != 1) {
      loops.push_back(
          {array.shape[d], array.byte_strides[d] / bytes, others.byte_strides[d] / others_bytes, is_sum ? 0 : states});
    }
    if (!is_sum) states *= array.shape[d];
  }
  std::ranges::sort(loops, std::ranges::greater{}, [](const Loop& each) { return std::pair(each.stride, each.size); });
  std::vector<Loop> merged;
  for (const Loop& loop : loops) {
    if (!merged.empty()) {
      Loop& outer = merged.back();
      if (outer.stride == loop.stride * loop.size && outer.others_stride == loop.others_stride * loop.size &&
          outer.state_stride == loop.state_stride * loop.size) {
        outer = {outer.size * loop.size, loop.stride, loop.others_stride, loop.state_stride};
        continue;
      }
    }
    merged.push_back(loop);
  }
  return merged;
}

template <class T, class U>
void add_array(const HostView& array, const HostView& others, ExactTerm term, std::span<const Loop> loops,
               std::span<ExactState> states) {
  TermAdder<T, U> adder(term, states);
  adder.add(loops, static_cast<const T*>(array.data), static_cast<const U*>(others.data), 0);
  adder.normalize();
}

}  // namespace

void add_exactly(const HostView& array, const HostView& others, ExactTerm term, std::span<const bool> is_reduced,
                 std::span<ExactState> states) {
  const bool has_others = term == ExactTerm::kProduct || term == ExactTerm::kDeviation;
  const HostView& second = has_others ? others : array;
  const DType others_dtype = term == ExactTerm::kDeviation ? DType::kFloat64 : array.dtype;
  if (array.dtype != DType::kFloat32 && array.dtype != DType::kFloat64) {
    throw_error("exact sum: expected float32 or float64, got {}", name(array.dtype));
  }
  if (second.shape != array.shape || second.dtype != others_dtype ||
      static_cast<int64_t>(is_reduced.size()) != array.shape.size()) {
    throw_error("exact sum: the operands do not fit each other; expected {}{} with {} flags, got {}{} and {}",
                name(array.dtype), to_string(array.shape), array.shape.size(), name(second.dtype),
                to_string(second.shape), is_reduced.size());
  }
  int64_t results = 1;
  for (int64_t d = 0; d < array.shape.size(); ++d) {
    if (!is_reduced[static_cast<size_t>(d)]) results *= array.shape[d];
  }
  if (results != static_cast<int64_t>(states.size())) {
    throw_error("exact sum: expected {} states, got {}", results, states.size());
  }
  if (std::ranges::find(array.shape, 0) != array.shape.end()) return;
  const std::vector<Loop> loops = loops_of(array, second, is_reduced);
  if (!loops.empty() &&
      (loops.back().stride != 1 || loops.back().others_stride < 0 || loops.back().others_stride > 1)) {
    throw_error(
        "exact sum: no dimension has consecutive elements; expected one, got strides {} and {}; use "
        "np.ascontiguousarray(x)",
        to_string(array.byte_strides), to_string(second.byte_strides));
  }
  if (array.dtype == DType::kFloat64) {
    add_array<double, double>(array, second, term, loops, states);
  } else if (term == ExactTerm::kDeviation) {
    add_array<float, double>(array, second, term, loops, states);
  } else {
    add_array<float, float>(array, second, term, loops, states);
  }
}

}  // namespace artifex_devices
