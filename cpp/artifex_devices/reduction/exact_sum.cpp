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

constexpr int kBiasOfPower = 1022;  // of the least power of two above a number
constexpr int kHeadroom = 10;       // 2^11 numbers of a run add up exactly
constexpr int kLevelBits = 53 - kHeadroom;
constexpr int kLeastMagic = -1022;
constexpr int64_t kGreatestBiased = 1023 - kHeadroom + kBiasOfPower;  // magic numbers are finite
constexpr int64_t kLeastRun = 8;                                      // shorter ones are added number by number
constexpr int64_t kRows = 64;                                         // that are added to columns at a time

/// A dimension, or several that follow each other in memory.
struct Loop {
  int64_t size;
  int64_t stride;         // in elements
  int64_t others_stride;  // in elements
  int64_t state_stride;   // in states; 0 where reduced
};

template <class T>
class Adder {
 public:
  Adder(ExactTerm term, std::span<ExactState> states) : term_(term), states_(states) {
    levels_ = sizeof(T) < sizeof(double) && term == ExactTerm::kValue ? 1 : 2;
  }

  void add(std::span<const Loop> loops, const T* from, const T* others, int64_t state) {
    if (loops.empty()) return add_run(from, others, 1, state);
    const Loop& loop = loops[0];
    if (loop.state_stride == 0 && loops.size() == 1) return add_run(from, others, loop.size, state);
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

  void normalize() noexcept {
    for (ExactState& state : states_) state.normalize();
    additions_ = 0;
  }

 private:
  void convert(const T* from, const T* others, int64_t count, double* to) const noexcept {
    const auto kind = static_cast<size_t>(term_);
    if constexpr (sizeof(T) == sizeof(float)) {
      kernels_.convert32[kind](from, others, count, to);
    } else {
      kernels_.convert64[kind](from, others, count, to);
    }
  }

  void count_additions(int64_t count) noexcept {
    additions_ += count;
    if (additions_ > ExactState::kMostAdditions) {
      normalize();
      additions_ = count;
    }
  }

  void add_run(const T* from, const T* others, int64_t count, int64_t state) noexcept {
    alignas(64) std::array<double, kExactRun> terms;  // NOLINT: written before it is read
    for (int64_t done = 0; done < count; done += kExactRun) {
      const int64_t size = std::min(kExactRun, count - done);
      ExactState& target = states_[static_cast<size_t>(state)];
      count_additions(size + kExactLevels);
      const double* run = terms.data();
      if constexpr (sizeof(T) == sizeof(double)) {
        if (term_ == ExactTerm::kValue) run = from + done;
      } else if (term_ == ExactTerm::kValue) {
        const double sum = kernels_.near32(from + done, size);
        if (!std::isnan(sum)) {
          target.add(sum);
          target.others = 1;
          continue;
        }
      }
      if (run == terms.data()) convert(from + done, others + done, size, terms.data());
      add_terms(run, size, target);
    }
  }

  void add_terms(const double* terms, int64_t count, ExactState& state) noexcept {
    const int64_t bits = kernels_.largest(terms, count);
    const int64_t biased = bits >> 52;
    if (bits == 0 && std::any_of(terms, terms + count, [](double zero) { return !std::signbit(zero); })) {
      state.others = 1;
      return;
    }
    if (bits != 0 && biased <= kGreatestBiased && count >= kLeastRun) {
      const int exponent = static_cast<int>(std::max<int64_t>(biased, 1)) - kBiasOfPower + kHeadroom;
      std::array<double, kExactLevels> magic;
      for (int level = 0; level < kExactLevels; ++level) {
        magic[static_cast<size_t>(level)] = 1.5 * std::ldexp(1.0, std::max(exponent - level * kLevelBits, kLeastMagic));
      }
      std::array<double, kExactLevels> sums = {};
      for (; levels_ <= kExactLevels; ++levels_) {
        if (!kernels_.extract[levels_ - 1](terms, count, magic.data(), sums.data())) continue;
        for (int level = 0; level < levels_; ++level) state.add(sums[static_cast<size_t>(level)]);
        state.others = 1;
        return;
      }
      levels_ = kExactLevels;
    }
    for (int64_t i = 0; i < count; ++i) state.add(terms[i]);
  }

  // The last loop is of the result, consecutive in memory; the others are reduced.
  void add_columns(std::span<const Loop> loops, const T* from, const T* others, int64_t state) {
    const Loop& columns = loops.back();
    for (int64_t first = 0; first < columns.size; first += kExactColumns) {
      const int64_t width = std::min(kExactColumns, columns.size - first);
      std::vector<std::pair<const T*, const T*>> rows;
      const auto each_row = [&](auto& self, std::span<const Loop> outer, const T* row, const T* other) -> void {
        if (outer.empty()) {
          rows.emplace_back(row, other);
          if (static_cast<int64_t>(rows.size()) == kRows)
            add_rows(rows, width, state + first * columns.state_stride, columns.state_stride);
          return;
        }
        for (int64_t i = 0; i < outer[0].size; ++i) {
          self(self, outer.subspan(1), row + i * outer[0].stride, other + i * outer[0].others_stride);
        }
      };
      each_row(each_row, loops.first(loops.size() - 1), from + first, others + first);
      add_rows(rows, width, state + first * columns.state_stride, columns.state_stride);
    }
  }

  // Adds rows to states and removes them from the list.
  void add_rows(std::vector<std::pair<const T*, const T*>>& rows, int64_t width, int64_t state, int64_t state_stride) {
    if (rows.empty()) return;
    ExactColumns totals;  // NOLINT: written before it is read
    std::fill_n(totals.sum, width, -0.0);
    std::fill_n(totals.rest, width, 0.0);
    std::fill_n(totals.is_inexact, width, 0);
    const auto count = static_cast<int64_t>(rows.size());
    const bool is_converted = term_ != ExactTerm::kValue;
    std::array<const T*, kRows> sources = {};
    std::array<const double*, kRows> terms = {};
    if (is_converted) {
      converted_.resize(static_cast<size_t>(kRows * kExactColumns));
      for (int64_t row = 0; row < count; ++row) {
        double* const to = converted_.data() + row * kExactColumns;
        terms[static_cast<size_t>(row)] = to;
        convert(rows[static_cast<size_t>(row)].first, rows[static_cast<size_t>(row)].second, width, to);
      }
      kernels_.cascade64(terms.data(), count, width, &totals);
    } else {
      std::ranges::transform(rows, sources.begin(), [](const auto& row) { return row.first; });
      if constexpr (sizeof(T) == sizeof(float)) {
        kernels_.cascade32(sources.data(), count, width, &totals);
      } else {
        kernels_.cascade64(sources.data(), count, width, &totals);
      }
    }
    count_additions(count + 2);
    for (int64_t i = 0; i < width; ++i) {
      ExactState& target = states_[static_cast<size_t>(state + i * state_stride)];
      if (totals.is_inexact[i] == 0) {
        target.add(totals.sum[i]);
        if (totals.rest[i] != 0) target.add(totals.rest[i]);
        continue;
      }
      for (int64_t row = 0; row < count; ++row) {
        const auto r = static_cast<size_t>(row);
        target.add(is_converted ? terms[r][i] : static_cast<double>(sources[r][i]));
      }
    }
    rows.clear();
  }

  const ExactKernels& kernels_ = exact_kernels();
  ExactTerm term_;
  std::span<ExactState> states_;
  int levels_;  // that the last run needed
  int64_t additions_ = 0;
  std::vector<double> converted_;
};

/// The loops of an array, the widest stride first, without dimensions of one element.
std::vector<Loop> loops_of(const HostView& array, const HostView& others, std::span<const bool> is_reduced) {
  const int64_t bytes = itemsize(array.dtype);
  std::vector<Loop> loops;
  int64_t states = 1;
  for (int64_t d = array.shape.size() - 1; d >= 0; --d) {
    const bool is_sum = is_reduced[static_cast<size_t>(d)];
    if (array.shape[d] != 1) {
      loops.push_back(
          {array.shape[d], array.byte_strides[d] / bytes, others.byte_strides[d] / bytes, is_sum ? 0 : states});
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

template <class T>
void add_array(const HostView& array, const HostView& others, ExactTerm term, std::span<const Loop> loops,
               std::span<ExactState> states) {
  Adder<T> adder(term, states);
  adder.add(loops, static_cast<const T*>(array.data), static_cast<const T*>(others.data), 0);
  adder.normalize();
}

}  // namespace

void add_exactly(const HostView& array, const HostView& others, ExactTerm term, std::span<const bool> is_reduced,
                 std::span<ExactState> states) {
  const HostView& second = term == ExactTerm::kProduct ? others : array;
  if (array.dtype != DType::kFloat32 && array.dtype != DType::kFloat64) {
    throw_error("exact sum: expected float32 or float64, got {}", name(array.dtype));
  }
  if (second.shape != array.shape || second.dtype != array.dtype ||
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
  if (!loops.empty() && (loops.back().stride != 1 || loops.back().others_stride != 1)) {
    throw_error(
        "exact sum: no dimension has consecutive elements; expected one, got strides {} and {}; use "
        "np.ascontiguousarray(x)",
        to_string(array.byte_strides), to_string(second.byte_strides));
  }
  if (array.dtype == DType::kFloat32) {
    add_array<float>(array, second, term, loops, states);
  } else {
    add_array<double>(array, second, term, loops, states);
  }
}

}  // namespace artifex_devices
