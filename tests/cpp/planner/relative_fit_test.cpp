// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/calibration/relative_fit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "artifex_devices/base/error.h"

namespace artifex_devices::planner {
namespace {

TimedTerms made(std::vector<double> terms, const std::vector<double>& coefficients) {
  double seconds = 0;
  for (size_t i = 0; i < terms.size(); ++i) seconds += terms[i] * coefficients[i];
  return {std::move(terms), seconds};
}

TEST(RelativeFit, RecoversTheCoefficientsOfExactSamples) {
  // Latencies of microseconds beside rates of 1e10 bytes/s, as copies have them; one coefficient is 0.
  const std::vector<double> coefficients = {5e-6, 1e-10, 0, 3e-7};
  std::mt19937 random(1);
  std::uniform_real_distribution<double> exponent(0, 8);
  std::vector<TimedTerms> samples;
  for (int i = 0; i < 20; ++i) {
    samples.push_back(
        made({1, std::pow(10, exponent(random)), std::pow(10, exponent(random)), double(i % 5)}, coefficients));
  }
  const RelativeFit found = fit_relative(samples);
  ASSERT_EQ(found.coefficients.size(), coefficients.size());
  for (size_t i = 0; i < coefficients.size(); ++i) {
    EXPECT_NEAR(found.coefficients[i], coefficients[i], 1e-9 * coefficients[i] + 1e-24) << i;
  }
  for (const double error : found.relative_errors) EXPECT_NEAR(error, 0, 1e-9);
}

TEST(RelativeFit, WeighsErrorsRelativeToTheTime) {
  // One rate for 1 s and 3 s of the same bytes: x - 1 and x / 3 - 1 have the least squares at x = 1.2.
  const RelativeFit found = fit_relative({{{1}, 1}, {{1}, 3}});
  EXPECT_NEAR(found.coefficients[0], 1.2, 1e-12);
  EXPECT_NEAR(found.relative_errors[0], 0.2, 1e-12);
  EXPECT_NEAR(found.relative_errors[1], -0.6, 1e-12);
}

TEST(RelativeFit, ReturnsNoNegativeCoefficient) {
  // Without the bound: 3 for the first, -1 for the second.
  const RelativeFit found = fit_relative({{{1, 1}, 2}, {{2, 4}, 2}, {{1, 0}, 3}});
  EXPECT_GT(found.coefficients[0], 0);
  EXPECT_EQ(found.coefficients[1], 0);
  // The best of the first alone: sum of 1/2, 1, 1/3 by sum of their squares.
  EXPECT_NEAR(found.coefficients[0], (0.5 + 1 + 1.0 / 3) / (0.25 + 1 + 1.0 / 9), 1e-12);
}

TEST(RelativeFit, AcceptsUnusedAndDuplicateTerms) {
  const RelativeFit unused = fit_relative({{{2, 0}, 4}, {{3, 0}, 6}});
  EXPECT_DOUBLE_EQ(unused.coefficients[0], 2);
  EXPECT_EQ(unused.coefficients[1], 0);
  const RelativeFit alike = fit_relative({{{1, 1}, 2}, {{2, 2}, 4}});
  EXPECT_NEAR(alike.coefficients[0] + alike.coefficients[1], 2, 1e-12);
}

TEST(RelativeFit, UsesOneOfDuplicateTermsWhereRoundingErrorsLookLikeAGain) {
  std::uniform_real_distribution<double> part(0.1, 1);
  for (unsigned seed = 1; seed <= 300; ++seed) {  // without the check of `solve`, about one in ten divides 0 by 0
    std::mt19937 random(seed);
    std::vector<TimedTerms> samples;
    for (int i = 0; i < 20; ++i) {
      const double a = part(random), b = part(random);
      samples.push_back({.terms = {a, b, a, b}, .seconds = (3 * a + 2 * b) * (1 + part(random) / 10), .weight = 1e8});
    }
    for (const double error : fit_relative(samples).relative_errors) EXPECT_LT(std::abs(error), 0.2) << seed;
  }
}

TEST(RelativeFit, RecoversCoefficientsOfTermsThatAreAlmostAlike) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> part(0.1, 1);
  std::vector<TimedTerms> samples;
  for (int i = 0; i < 20; ++i) {
    const double a = part(random);
    samples.push_back(made({a, a + 1e-6 * part(random)}, {1, 2}));
  }
  const RelativeFit found = fit_relative(samples);
  EXPECT_NEAR(found.coefficients[0], 1, 1e-7);
  EXPECT_NEAR(found.coefficients[1], 2, 1e-7);
}

TEST(RelativeFit, AcceptsNumbersOfAnyMagnitude) {
  for (const double size : {1e-200, 1e200}) {
    const RelativeFit found = fit_relative({{{size, 1}, 3}, {{size, 2}, 4}});
    EXPECT_NEAR(found.coefficients[0] * size, 2, 1e-12);
    EXPECT_NEAR(found.coefficients[1], 1, 1e-12);
  }
}

TEST(RelativeFit, RefusesInvalidSamples) {
  EXPECT_THROW(fit_relative({{{1e300}, 1e-300}}), InvalidArgument);
  EXPECT_THROW(fit_relative({}), InvalidArgument);
  EXPECT_THROW(fit_relative({{{1}, 1}, {{1, 2}, 1}}), InvalidArgument);
  EXPECT_THROW(fit_relative({{{1}, 0}}), InvalidArgument);
  EXPECT_THROW(fit_relative({{{-1}, 1}}), InvalidArgument);
  EXPECT_THROW(fit_relative({{{1}, std::numeric_limits<double>::quiet_NaN()}}), InvalidArgument);
  EXPECT_THROW(fit_relative({{{std::numeric_limits<double>::infinity()}, 1}}), InvalidArgument);
}

}  // namespace
}  // namespace artifex_devices::planner
