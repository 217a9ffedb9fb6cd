// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "artifex_devices/reduction/exact_kernels.h"
#include "artifex_devices/reduction/exact_state.h"

namespace artifex_devices {

/// Adds doubles to states, in runs and in rows of columns. `bits` are the greatest bits of their absolute values.
class ExactAdder {
 public:
  /// Without states, runs are not added, and columns are written by `finish`.
  ExactAdder(std::span<ExactState> states, int levels) : states_(states), least_levels_(levels) {}

  /// Adds kExactRun numbers at most to a state.
  void add_run(const double* terms, int64_t count, int64_t bits, int64_t state) noexcept;

  /// Adds the exact sum of numbers that are not all zeros.
  void add_sum(double sum, int64_t state) noexcept;

  /// Starts to add rows of columns: column i is added to state first + i * stride, by `flush`.
  void start_columns(int64_t first, int64_t stride, int64_t width);

  /// Adds kExactRows rows at most to a strip of kExactColumns columns.
  void add_rows(const double* const* rows, int64_t count, int64_t bits, int64_t strip);

  /// Returns memory for `count` rows of exact sums of a strip's columns, which `keep_rows` adds.
  double* next_rows(int64_t strip, int64_t count);
  void keep_rows(int64_t strip, int64_t count) noexcept { strips_[static_cast<size_t>(strip)].count += count; }

  /// Adds the kept rows to the states.
  void flush();

  /// Writes the sums of all columns, divided and rounded once, in place of `flush`.
  void finish(const RoundingFormat& format, int64_t divisor, double* out);

  void normalize() noexcept;

 private:
  /// Extracts in as many levels as it takes. Returns their number, or 0 if that is more than kExactLevels.
  template <class Extract>
  int extract(int64_t bits, int64_t headroom, const Extract& by_levels) noexcept;
  struct Strip {
    int64_t width;
    int64_t count;
    bool has_states;           // some of the numbers were added to states
    std::vector<double> rows;  // of exact sums
  };

  static constexpr int64_t kKeptRows = 64;
  using Rows = std::array<const double*, kKeptRows>;
  static Rows rows_of(const Strip& strip) noexcept;

  /// Writes the sums of rows of columns. Returns whether all of them are exact.
  bool cascade(const double* const* rows, int64_t count, int64_t width, ExactColumns* totals) noexcept;
  void add_columns(const double* const* rows, int64_t count, int64_t strip);
  ExactState& state_of(int64_t strip, int64_t column) noexcept {
    return states_[static_cast<size_t>(first_ + (strip * kExactColumns + column) * stride_)];
  }
  void count_additions(int64_t count) noexcept;

  const ExactKernels& kernels_ = exact_kernels();
  std::span<ExactState> states_;
  int least_levels_;
  int levels_ = least_levels_;  // that the last numbers needed
  int runs_to_trial_ = 0;       // of fewer levels
  int64_t additions_ = 0;
  int64_t first_ = 0;
  int64_t stride_ = 0;
  std::vector<Strip> strips_;
  std::vector<ExactState> own_states_;  // of the columns, where no states were passed
};

}  // namespace artifex_devices
