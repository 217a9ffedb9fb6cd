// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// Always inlined, and private to each object: the loops of each instruction set use it (totals_template.h).
namespace artifex_devices {
namespace {

/// Moments of parts of the columns of an array, `apart` numbers from each other: approximate means; what is missing
/// from them, without which variances of numbers far from 0 would be lost when parts are joined; sums of squared
/// differences from the exact means.
struct Moments {
  double* means;
  int64_t apart;

  double* rests() const noexcept { return means + apart; }
  double* squares() const noexcept { return means + 2 * apart; }
  Moments at(int64_t column) const noexcept { return {means + column, apart}; }
};

/// Joins moments of `count` rows with those of `other_count` more, by Chan's rule.
[[gnu::always_inline]] inline void join_moments(const Moments& into, int64_t count, const Moments& other,
                                                int64_t other_count, int64_t columns) noexcept {
  const double share = static_cast<double>(other_count) / static_cast<double>(count + other_count);
  const double weight = static_cast<double>(count) * share;
  double* __restrict const means = into.means;
  double* __restrict const rests = into.rests();
  double* __restrict const squares = into.squares();
  const double* __restrict const other_means = other.means;
  const double* __restrict const other_rests = other.rests();
  const double* __restrict const other_squares = other.squares();
  for (int64_t j = 0; j < columns; ++j) {
    const double difference = (other_means[j] - means[j]) + (other_rests[j] - rests[j]);
    const double step = difference * share + rests[j];
    const double mean = means[j] + step;
    const double added = mean - means[j];
    rests[j] = (means[j] - (mean - added)) + (step - added);  // the rounding error of `mean`
    means[j] = mean;
    squares[j] += other_squares[j] + difference * difference * weight;
  }
}

/// Joins groups of rows, pairwise, into the first one: group g has counts[g] rows, and its moments are at g * distance.
[[gnu::always_inline]] inline void join_groups_of_moments(const Moments& moments, int64_t* counts, int64_t groups,
                                                          int64_t distance, int64_t width) noexcept {
  while (groups > 1) {
    const int64_t half = (groups + 1) / 2;
    for (int64_t g = 0; g < groups - half; ++g) {
      join_moments(moments.at(g * distance), counts[g], moments.at((half + g) * distance), counts[half + g], width);
      counts[g] += counts[half + g];
    }
    groups = half;
  }
}

}  // namespace
}  // namespace artifex_devices
