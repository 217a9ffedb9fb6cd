// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/reduction/exact_adder.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <optional>
#include <utility>

#include "artifex_devices/reduction/exact_quotient.h"

namespace artifex_devices {
namespace {

constexpr int64_t kBiasOfPower = 1022;                                    // of the least power of two above a number
constexpr int64_t kMostHeadroom = 10;                                     // 2^11 numbers of a run add up exactly
constexpr int64_t kGreatestBiased = 1023 - kMostHeadroom + kBiasOfPower;  // magic numbers are finite
constexpr int64_t kLeastRun = 8;                                          // shorter ones are added number by number
constexpr int kRunsBetweenTrials = 8;

using Magic = std::array<double, kExactLevels>;

/// 1.5 times a power of two for each level: 2^headroom times the least above all numbers, so that sums of
/// 2^(headroom - 1) numbers do not change the exponent.
Magic magic_of(int64_t bits, int64_t headroom) noexcept {
  const int64_t biased = std::max<int64_t>(bits >> 52, 1) - kBiasOfPower + headroom + 1023;
  Magic magic;
  for (int64_t level = 0; level < kExactLevels; ++level) {
    const auto exponent = static_cast<uint64_t>(std::max<int64_t>(biased - level * (53 - headroom), 1));
    magic[static_cast<size_t>(level)] = 1.5 * std::bit_cast<double>(exponent << 52);
  }
  return magic;
}

bool is_negative_zero(double number) noexcept { return number == 0 && std::signbit(number); }

}  // namespace

template <class Extract>
int ExactAdder::extract(int64_t bits, int64_t headroom, const Extract& by_levels) noexcept {
  if (bits == 0 || (bits >> 52) > kGreatestBiased) return 0;
  const Magic magic = magic_of(bits, headroom);
  if (levels_ > least_levels_ && --runs_to_trial_ == 0) levels_ = least_levels_;
  for (; levels_ <= kExactLevels; ++levels_) {
    if (by_levels(levels_ - 1, magic.data())) return levels_;
    runs_to_trial_ = kRunsBetweenTrials;
  }
  levels_ = kExactLevels;
  return 0;
}

void ExactAdder::add_run(const double* terms, int64_t count, int64_t bits, int64_t state) noexcept {
  ExactState& target = states_[static_cast<size_t>(state)];
  count_additions(count + kExactLevels);
  if (bits == 0 && !std::all_of(terms, terms + count, is_negative_zero)) {
    target.others = 1;
    return;
  }
  std::array<double, kExactLevels> sums;  // NOLINT: written before it is read
  const int levels = count < kLeastRun ? 0
                                       : extract(
                                             bits, kMostHeadroom,
                                             [&](int level, const double* magic) {
                                               return kernels_.extract[level](terms, count, magic, sums.data());
                                             });
  for (int level = 0; level < levels; ++level) target.add(sums[static_cast<size_t>(level)]);
  if (levels == 0) {
    for (int64_t i = 0; i < count; ++i) target.add(terms[i]);
  } else {
    target.others = 1;
  }
}

void ExactAdder::add_sum(double sum, int64_t state) noexcept {
  count_additions(1);
  states_[static_cast<size_t>(state)].add(sum);
  states_[static_cast<size_t>(state)].others = 1;
}

void ExactAdder::start_columns(int64_t first, int64_t stride, int64_t width) {
  first_ = first;
  stride_ = stride;
  strips_.resize(static_cast<size_t>((width + kExactColumns - 1) / kExactColumns));
  for (Strip& strip : strips_) {
    strip.width = std::min(width, kExactColumns);
    strip.has_states = false;
    strip.rows.resize(static_cast<size_t>(kKeptRows * kExactColumns));
    width -= kExactColumns;
  }
}

ExactAdder::Rows ExactAdder::rows_of(const Strip& strip) noexcept {
  Rows rows;
  for (size_t row = 0; row < rows.size(); ++row) rows[row] = strip.rows.data() + row * kExactColumns;
  return rows;
}

double* ExactAdder::next_rows(int64_t strip, int64_t count) {
  Strip& kept = strips_[static_cast<size_t>(strip)];
  if (kept.count + count > kKeptRows) {
    ExactColumns totals;  // NOLINT: written before it is read
    const Rows rows = rows_of(kept);
    if (cascade(rows.data(), kept.count, kept.width, &totals)) {
      for (int64_t i = 0; i < kept.width; ++i) {
        kept.rows[static_cast<size_t>(i)] = totals.sum[i];
        kept.rows[static_cast<size_t>(kExactColumns + i)] = totals.rest[i] == 0 ? -0.0 : totals.rest[i];
      }
      kept.count = 2;
    } else {
      add_columns(rows.data(), std::exchange(kept.count, 0), strip);
    }
  }
  return kept.rows.data() + kept.count * kExactColumns;
}

void ExactAdder::add_rows(const double* const* rows, int64_t count, int64_t bits, int64_t strip) {
  double* const sums = next_rows(strip, std::max<int64_t>(kExactLevels, kLeastRun));
  Strip& kept = strips_[static_cast<size_t>(strip)];
  if (count < kLeastRun) {
    for (int64_t row = 0; row < count; ++row) std::copy_n(rows[row], kept.width, sums + row * kExactColumns);
    return keep_rows(strip, count);
  }
  const int64_t headroom = std::bit_width(static_cast<uint64_t>(count)) + 1;
  const int levels = extract(bits, headroom, [&](int level, const double* magic) {
    return kernels_.extract_columns[level](rows, count, kept.width, magic, sums);
  });
  if (levels == 0) return add_columns(rows, count, strip);
  for (int64_t i = 0; i < kept.width; ++i) {
    if (sums[i] != 0 || !std::all_of(rows, rows + count, [i](auto row) { return is_negative_zero(row[i]); })) continue;
    for (int level = 0; level < levels; ++level) sums[level * kExactColumns + i] = -0.0;
  }
  keep_rows(strip, levels);
}

void ExactAdder::flush() {
  for (size_t strip = 0; strip < strips_.size(); ++strip) {
    Strip& kept = strips_[strip];
    add_columns(rows_of(kept).data(), std::exchange(kept.count, 0), static_cast<int64_t>(strip));
  }
}

void ExactAdder::finish(const RoundingFormat& format, int64_t divisor, double* out) {
  for (size_t strip = 0; strip < strips_.size(); ++strip, out += kExactColumns) {
    Strip& kept = strips_[strip];
    const Rows rows = rows_of(kept);
    if (kept.has_states) add_columns(rows.data(), std::exchange(kept.count, 0), static_cast<int64_t>(strip));
    ExactColumns totals;  // NOLINT: written before it is read
    cascade(rows.data(), kept.count, kept.width, &totals);
    for (int64_t i = 0; i < kept.width; ++i) {
      std::optional<double> result;
      if (kept.has_states) {
        result = std::exchange(state_of(static_cast<int64_t>(strip), i), {}).round(format, divisor);
      } else if (totals.is_inexact[i] == 0) {
        result = quotient(totals.sum[i], totals.rest[i], format, divisor);
      }
      if (!result) {
        ExactState state;
        for (int64_t row = 0; row < kept.count; ++row) state.add(rows[static_cast<size_t>(row)][i]);
        result = state.round(format, divisor);
      }
      out[i] = *result;
    }
    kept.count = 0;
  }
}

bool ExactAdder::cascade(const double* const* rows, int64_t count, int64_t width, ExactColumns* totals) noexcept {
  std::fill_n(totals->sum, width, -0.0);
  std::fill_n(totals->rest, width, 0.0);
  std::fill_n(totals->is_inexact, width, 0);
  kernels_.cascade64(rows, count, width, totals);
  return std::all_of(totals->is_inexact, totals->is_inexact + width, [](int64_t mark) { return mark == 0; });
}

void ExactAdder::add_columns(const double* const* rows, int64_t count, int64_t strip) {
  if (count == 0) return;
  if (states_.empty()) {
    own_states_.resize(strips_.size() * kExactColumns);
    states_ = own_states_;
  }
  Strip& target_strip = strips_[static_cast<size_t>(strip)];
  target_strip.has_states = true;
  ExactColumns totals;  // NOLINT: written before it is read
  cascade(rows, count, target_strip.width, &totals);
  count_additions(count + 2);
  for (int64_t i = 0; i < target_strip.width; ++i) {
    ExactState& target = state_of(strip, i);
    if (totals.is_inexact[i] == 0) {
      target.add(totals.sum[i]);
      if (totals.rest[i] != 0) target.add(totals.rest[i]);
    } else {
      for (int64_t row = 0; row < count; ++row) target.add(rows[row][i]);
    }
  }
}

void ExactAdder::count_additions(int64_t count) noexcept {
  additions_ += count;
  if (additions_ > ExactState::kMostAdditions) {
    normalize();
    additions_ = count;
  }
}

void ExactAdder::normalize() noexcept {
  for (ExactState& state : states_) state.normalize();
  additions_ = 0;
}

}  // namespace artifex_devices
