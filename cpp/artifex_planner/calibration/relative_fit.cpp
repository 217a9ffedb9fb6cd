// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/calibration/relative_fit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "artifex_devices/base/throw_error.h"

namespace artifex_devices::planner {
namespace {

using Column = std::vector<double>;

constexpr double kSmall = 1e-12;  // of columns of length 1

double dot(const Column& a, const Column& b) { return std::inner_product(a.begin(), a.end(), b.begin(), 0.0); }

double length(const Column& column) { return std::sqrt(dot(column, column)); }

void add(Column& to, double factor, const Column& column) {
  for (size_t i = 0; i < to.size(); ++i) to[i] += factor * column[i];
}

void divide(Column& column, double by) {
  for (double& value : column) value /= by;
}

void check(const std::vector<TimedTerms>& samples) {
  if (samples.empty()) throw_error("fit_relative: there are no samples; expected one at least; measure something");
  for (const TimedTerms& sample : samples) {
    if (sample.terms.size() != samples.front().terms.size()) {
      throw_error("fit_relative: samples have {} and {} terms; expected the same number in all samples",
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

/// target minus the sum of the columns times their coefficients.
Column residual(const std::vector<Column>& columns, const Column& coefficients, Column target) {
  for (size_t k = 0; k < columns.size(); ++k) add(target, -coefficients[k], columns[k]);
  return target;
}

/// Least squares over the chosen columns by the Gram-Schmidt method. The coefficient is 0 for other columns, and for a
/// chosen column that depends linearly on earlier ones. (With Eigen's decomposition this file took 17 s to compile
/// instead of 3 s.)
Column solve(const std::vector<Column>& columns, const Column& target, const std::vector<size_t>& chosen) {
  const double none = std::numeric_limits<double>::epsilon() * static_cast<double>(chosen.size());
  std::vector<size_t> used;
  std::vector<Column> basis;  // orthonormal
  std::vector<Column> parts;  // of each used column, along each vector of the basis up to its own
  for (const size_t k : chosen) {
    Column rest = columns[k];
    Column along(basis.size());
    for (int pass = 0; pass < 2; ++pass) {  // the second removes the rounding errors of the first
      for (size_t i = 0; i < basis.size(); ++i) {
        const double part = dot(basis[i], rest);
        add(rest, -part, basis[i]);
        along[i] += part;
      }
    }
    const double own = length(rest);
    if (own <= none) continue;
    divide(rest, own);
    along.push_back(own);
    used.push_back(k);
    basis.push_back(std::move(rest));
    parts.push_back(std::move(along));
  }
  Column result(columns.size());
  for (size_t i = used.size(); i-- > 0;) {
    double part = dot(basis[i], target);
    for (size_t j = i + 1; j < used.size(); ++j) part -= parts[j][i] * result[used[j]];
    result[used[i]] = part / parts[i][i];
  }
  return result;
}

/// Non-negative least squares; the columns have length 1 or 0.
Column solve_positive(const std::vector<Column>& columns, const Column& target) {
  std::vector<size_t> free;
  Column found(columns.size());
  const size_t rounds = 10 * columns.size() + 10;  // usually as few as the columns; ties could cycle forever
  for (size_t round = 0; round < rounds; ++round) {
    const Column missing = residual(columns, found, target);
    std::optional<size_t> best;
    double most = kSmall;
    for (size_t k = 0; k < columns.size(); ++k) {
      const double gain = dot(columns[k], missing);
      if (std::ranges::find(free, k) == free.end() && gain > most) {
        best = k;
        most = gain;
      }
    }
    if (!best) break;
    free.push_back(*best);
    Column next = solve(columns, target, free);
    while (std::ranges::any_of(free, [&](size_t k) { return next[k] <= 0; })) {
      double step = 1;  // until one would fall below 0
      for (const size_t k : free) {
        if (next[k] <= 0) step = std::min(step, found[k] / (found[k] - next[k]));
      }
      for (size_t k = 0; k < found.size(); ++k) found[k] += step * (next[k] - found[k]);
      std::erase_if(free, [&](size_t k) { return found[k] <= kSmall || (k == *best && next[k] <= 0); });
      next = solve(columns, target, free);
    }
    found = next;
  }
  return found;
}

}  // namespace

RelativeFit fit_relative(const std::vector<TimedTerms>& samples) {
  check(samples);
  std::vector<Column> columns(samples.front().terms.size(), Column(samples.size()));
  Column weights;
  for (size_t i = 0; i < samples.size(); ++i) {
    weights.push_back(samples[i].weight);
    for (size_t k = 0; k < columns.size(); ++k) columns[k][i] = samples[i].terms[k] / samples[i].seconds;
  }
  // Squares of the residuals neither overflow nor vanish: the largest number of each column becomes 1.
  Column largest;
  for (Column& column : columns) {
    largest.push_back(std::ranges::max(column));
    if (!std::isfinite(largest.back())) {
      throw_error(
          "fit_relative: a term is more than 1.8e308 times its seconds; expected smaller terms; correct the sample");
    }
    if (largest.back() > 0) divide(column, largest.back());
  }
  std::vector<Column> scaled = columns;
  Column lengths;
  for (Column& column : scaled) {
    for (size_t i = 0; i < column.size(); ++i) column[i] *= weights[i];
    lengths.push_back(length(column));
    if (lengths.back() > 0) divide(column, lengths.back());
  }
  Column coefficients = solve_positive(scaled, weights);
  for (size_t k = 0; k < columns.size(); ++k) coefficients[k] = lengths[k] > 0 ? coefficients[k] / lengths[k] : 0;
  Column errors(samples.size(), -1);
  for (size_t k = 0; k < columns.size(); ++k) add(errors, coefficients[k], columns[k]);
  for (size_t k = 0; k < columns.size(); ++k) coefficients[k] = lengths[k] > 0 ? coefficients[k] / largest[k] : 0;
  return {coefficients, errors};
}

}  // namespace artifex_devices::planner
