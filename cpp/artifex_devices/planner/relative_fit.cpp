// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/planner/relative_fit.h"

#include <Eigen/QR>
#include <algorithm>
#include <cmath>

#include "artifex_devices/base/throw_error.h"

namespace artifex_devices {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr double kSmall = 1e-12;  // of columns of length 1

void check(const std::vector<TimedTerms>& samples) {
  if (samples.empty()) throw_error("fit_relative: there are no samples; expected one at least; measure something");
  for (const TimedTerms& sample : samples) {
    if (sample.terms.size() != samples.front().terms.size()) {
      throw_error("fit_relative: samples have {} and {} terms; expected the same ones for all",
                  samples.front().terms.size(), sample.terms.size());
    }
    const bool good = std::ranges::all_of(sample.terms, [](double term) { return std::isfinite(term) && term >= 0; });
    if (!std::isfinite(sample.weight) || sample.weight <= 0) {
      throw_error("fit_relative: a sample has the weight {}; expected a finite number above 0", sample.weight);
    }
    if (!good || !std::isfinite(sample.seconds) || sample.seconds <= 0) {
      throw_error(
          "fit_relative: a sample of {} s has a term that is NaN or below 0, or no time; expected finite numbers",
          sample.seconds);
    }
  }
}

/// Least squares over some of the columns; 0 for the others.
VectorXd solve(const MatrixXd& matrix, const VectorXd& target, const std::vector<Index>& columns) {
  VectorXd result = VectorXd::Zero(matrix.cols());
  if (columns.empty()) return result;
  const VectorXd part = matrix(Eigen::all, columns).colPivHouseholderQr().solve(target);
  for (size_t i = 0; i < columns.size(); ++i) result[columns[i]] = part[static_cast<Index>(i)];
  return result;
}

/// Non-negative least squares; the columns have length 1 or 0.
VectorXd solve_positive(const MatrixXd& matrix, const VectorXd& target) {
  std::vector<Index> free;
  VectorXd found = VectorXd::Zero(matrix.cols());
  const Index rounds = 10 * matrix.cols() + 10;  // usually as few as the columns; ties could cycle forever
  for (Index round = 0; round < rounds; ++round) {
    const VectorXd gain = matrix.transpose() * (target - matrix * found);
    Index best = -1;
    for (Index i = 0; i < gain.size(); ++i) {
      if (std::ranges::find(free, i) == free.end() && gain[i] > kSmall && (best < 0 || gain[i] > gain[best])) best = i;
    }
    if (best < 0) break;
    free.push_back(best);
    VectorXd next = solve(matrix, target, free);
    while (std::ranges::any_of(free, [&](Index i) { return next[i] <= 0; })) {
      double step = 1;  // until one would fall below 0
      for (const Index i : free) {
        if (next[i] <= 0) step = std::min(step, found[i] / (found[i] - next[i]));
      }
      found += step * (next - found);
      std::erase_if(free, [&](Index i) { return found[i] <= kSmall || (i == best && next[i] <= 0); });
      next = solve(matrix, target, free);
    }
    found = next;
  }
  return found;
}

}  // namespace

RelativeFit fit_relative(const std::vector<TimedTerms>& samples) {
  check(samples);
  const auto rows = static_cast<Index>(samples.size());
  const auto columns = static_cast<Index>(samples.front().terms.size());
  MatrixXd matrix(rows, columns);
  for (Index i = 0; i < rows; ++i) {
    const TimedTerms& sample = samples[static_cast<size_t>(i)];
    for (Index k = 0; k < columns; ++k) matrix(i, k) = sample.terms[static_cast<size_t>(k)] / sample.seconds;
  }
  if (!matrix.allFinite()) {
    throw_error(
        "fit_relative: a term is more than 1.8e308 times its seconds; expected smaller terms; correct the sample");
  }
  // Squares of the residuals neither overflow nor vanish.
  const VectorXd largest = matrix.colwise().maxCoeff();
  for (Index k = 0; k < columns; ++k) {
    if (largest[k] > 0) matrix.col(k) /= largest[k];
  }
  VectorXd weights(rows);
  for (Index i = 0; i < rows; ++i) weights[i] = samples[static_cast<size_t>(i)].weight;
  MatrixXd scaled = weights.asDiagonal() * matrix;
  const VectorXd lengths = scaled.colwise().norm();
  for (Index k = 0; k < columns; ++k) {
    if (lengths[k] > 0) scaled.col(k) /= lengths[k];
  }
  VectorXd found = solve_positive(scaled, weights);
  for (Index k = 0; k < columns; ++k) found[k] = lengths[k] > 0 ? found[k] / lengths[k] : 0;
  const VectorXd errors = (matrix * found).array() - 1;
  for (Index k = 0; k < columns; ++k) found[k] = lengths[k] > 0 ? found[k] / largest[k] : 0;
  return {{found.begin(), found.end()}, {errors.begin(), errors.end()}};
}

}  // namespace artifex_devices
