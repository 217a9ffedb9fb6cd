// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

namespace artifex_devices::planner {

/// One measurement: how much of each term it has, its seconds, and how much its error counts.
struct TimedTerms {
  std::vector<double> terms;
  double seconds = 0;
  double weight = 1;  // of its relative error
};

struct RelativeFit {
  std::vector<double> coefficients;     // of each term, 0 or more; 0 for terms that no sample has
  std::vector<double> relative_errors;  // of each sample: model / measured - 1
};

/// The coefficients, none below 0, with the least sum of squares of relative errors (model / measured - 1): a
/// microsecond of a short sample counts as much as a millisecond of a long one. By the active sets of Lawson and
/// Hanson, Solving Least Squares Problems (1974), chapter 23. Throws InvalidArgument for no samples, samples of unequal
/// length, numbers that are not finite, terms below 0, and seconds and weights that are not above 0. Example: terms {1,
/// 10} in 12 s and {1, 20} in 22 s give {2, 1}.
RelativeFit fit_relative(const std::vector<TimedTerms>& samples);

}  // namespace artifex_devices::planner
