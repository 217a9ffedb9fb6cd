// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/training/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "artifex_devices/base/interrupt.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_planner/calibration/relative_fit.h"
#include "artifex_planner/training/links.h"
#include "artifex_planner/training/time.h"

namespace artifex_devices::planner {
namespace {

/// Factors that one coefficient scales: fractions are divided by it, seconds multiplied. The first factor stays below
/// 1, and the rest are limited to 1.
struct Coefficient {
  std::vector<Factor> factors;
  bool is_seconds = false;
};
const std::array<Coefficient, 11> kCoefficients = {{{{Factor::kMatmul}},
                                                    {{Factor::kMatmulFloat8}},
                                                    {{Factor::kAttentionForward, Factor::kAttentionBackward}},
                                                    {{Factor::kMemory}},
                                                    {{Factor::kLinkFraction, Factor::kNvls}},
                                                    {{Factor::kNetwork, Factor::kSharp}},
                                                    {{Factor::kLayerSeconds}, true},
                                                    {{Factor::kStepSeconds}, true},
                                                    {{Factor::kGrouped}},
                                                    {{Factor::kDispatch}},
                                                    {{Factor::kExpertSeconds}, true}}};
constexpr double kLeastFraction = 0.01;
constexpr double kLeastSeconds = 1e-9;  // of a layer or step, as the start of a coefficient that may grow
constexpr double kSecondsPrior = 0.3;   // error of a step that the next two count as
constexpr double kLayerPrior = 1e-4;    // seconds of a layer
constexpr double kStepPrior = 0.1;      // seconds of a step
constexpr double kExpertPrior = 1e-3;   // seconds of a layer with experts
constexpr double kStep = 1e-4;          // relative, of finite differences
constexpr double kFixed = 1e3;          // weight of a coefficient that may not change
constexpr int kRounds = 30;

double& value(Efficiency& efficiency, Factor factor) { return efficiency.factors[static_cast<size_t>(factor)].value; }

void scale(Efficiency& efficiency, const Coefficient& coefficient, double by) {
  for (const Factor factor : coefficient.factors) {
    double& number = value(efficiency, factor);
    number = coefficient.is_seconds ? std::max(number, kLeastSeconds) * by
                                    : std::clamp(number / std::max(by, 1e-9), kLeastFraction, 1.0);
  }
}

/// A step with what does not depend on the factors.
struct PreparedStep {
  const MeasuredStep& measured;
  TrainingModel model;
  TrainingHardware hardware;
  TrainingLinks links;
  double seconds(const Efficiency& efficiency) {
    return training_seconds(model, measured.config, hardware, links, efficiency).total();
  }
};

std::vector<PreparedStep> prepared(const std::vector<MeasuredStep>& steps) {
  std::vector<PreparedStep> result;
  for (const MeasuredStep& step : steps) {
    result.push_back(
        {step, training_model(step.shape), training_hardware(*step.cluster), TrainingLinks(*step.cluster)});
    const std::string wrong = training_mistakes(step.shape, step.config, step.cluster->device_count());
    if (!wrong.empty()) throw_error("fit: step {} is inconsistent: {}; correct it", result.size() - 1, wrong);
  }
  return result;
}

/// The terms of a step at some factors, to compare with its measured seconds. The last one is what no coefficient
/// scales. Near these factors the seconds are the sum of the terms times their coefficients. Two coefficients scale the
/// products of experts, so the terms may exceed the seconds: the excess is added to the measured
/// seconds.
TimedTerms terms_of(PreparedStep& step, double seconds, const Efficiency& efficiency) {
  std::vector<double> terms;
  double rest = seconds;
  for (const Coefficient& each : kCoefficients) {
    Efficiency more = efficiency;
    for (const Factor factor : each.factors) {
      double& number = value(more, factor);
      number = each.is_seconds ? std::max(number, kLeastSeconds) * (1 + kStep) : number / (1 + kStep);
    }
    double slope = (step.seconds(more) - seconds) / kStep;
    if (each.is_seconds) {
      const double before = efficiency[each.factors[0]];
      slope *= kStep * std::max(before, kLeastSeconds) / (more[each.factors[0]] - before);
    }
    terms.push_back(std::max(slope, 0.0));
    rest -= terms.back();
  }
  terms.push_back(std::max(rest, 0.0));
  const double measured = step.measured.seconds;
  const double compared = measured - std::min(rest, 0.0);
  return {std::move(terms), compared, compared / measured};
}

double squares(const std::vector<MeasuredStep>& steps, const std::vector<double>& predicted) {
  double sum = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    const double error = predicted[i] / steps[i].seconds - 1;
    sum += error * error;
  }
  return sum;
}

/// Least squares, in which each fraction is drawn to its start and none exceeds 1; fixed seconds are drawn to 0.
std::vector<double> coefficients(std::vector<TimedTerms> samples, const Efficiency& start, const Efficiency& current) {
  const size_t count = kCoefficients.size();
  const auto draw = [&](size_t column, double to, double weight) {
    TimedTerms prior{std::vector<double>(count + 1, 0.0), 1, weight};
    prior.terms[column] = 1 / to;
    samples.push_back(std::move(prior));
  };
  for (size_t k = 0; k < count; ++k) {
    const Factor factor = kCoefficients[k].factors[0];
    if (!kCoefficients[k].is_seconds) {
      draw(k, current[factor] / start[factor], kFitPrior);
      continue;
    }
    // The last term has the coefficient 1 and the time is 1, so the error is the fixed seconds alone.
    const double whole = factor == Factor::kLayerSeconds    ? kLayerPrior
                         : factor == Factor::kExpertSeconds ? kExpertPrior
                                                            : kStepPrior;
    TimedTerms prior{std::vector<double>(count + 1, 0.0), 1, kSecondsPrior};
    prior.terms[k] = std::max(current[factor], kLeastSeconds) / whole;
    prior.terms[count] = 1;
    samples.push_back(std::move(prior));
  }
  draw(count, 1, kFixed);  // what no coefficient scales stays
  std::vector<bool> is_full(count, false);
  while (true) {
    std::vector<double> found = fit_relative(samples).coefficients;
    bool is_done = true;
    for (size_t k = 0; k < count; ++k) {
      if (kCoefficients[k].is_seconds || is_full[k]) continue;
      const double most = current[kCoefficients[k].factors[0]];
      if (found[k] >= most) continue;
      is_full[k] = true;
      is_done = false;
      draw(k, most, kFixed);
    }
    if (is_done) return found;
  }
}

}  // namespace

TrainingFit fit_training(const std::vector<MeasuredStep>& steps, const Efficiency& start) {
  if (steps.empty()) throw_error("fit: there are no steps; expected one at least; measure one");
  for (size_t i = 0; i < steps.size(); ++i) {
    if (!std::isfinite(steps[i].seconds) || steps[i].seconds <= 0) {
      throw_error("fit: step {} took {} seconds; expected a finite number above 0; correct it", i, steps[i].seconds);
    }
  }
  std::vector<PreparedStep> prepared_steps = prepared(steps);
  const auto predict = [&](const Efficiency& efficiency) {
    std::vector<double> seconds;
    for (PreparedStep& step : prepared_steps) seconds.push_back(step.seconds(efficiency));
    return seconds;
  };
  TrainingFit best{start, {}, predict(start)};
  double least = squares(steps, best.predicted);
  std::array<bool, kCoefficients.size()> counts{};
  Efficiency current = start;
  std::vector<double> predicted = best.predicted;
  for (int round = 0; round < kRounds; ++round) {
    check_interrupt();
    std::vector<TimedTerms> samples;
    for (size_t i = 0; i < steps.size(); ++i) {
      samples.push_back(terms_of(prepared_steps[i], predicted[i], current));
      for (size_t k = 0; k < counts.size(); ++k) {
        counts[k] = counts[k] || (!kCoefficients[k].is_seconds && samples.back().terms[k] > 1e-6 * predicted[i]) ||
                    (kCoefficients[k].is_seconds && samples.back().terms[k] > 0);
      }
    }
    const std::vector<double> found = coefficients(samples, start, current);
    const double damping = round < 3 ? 1 : 0.5;
    for (size_t k = 0; k < kCoefficients.size(); ++k) {
      if (!counts[k]) continue;
      if (kCoefficients[k].is_seconds) {
        scale(current, kCoefficients[k], 1 + damping * (found[k] - 1));
      } else {
        scale(current, kCoefficients[k], std::pow(std::clamp(found[k], 0.1, 10.0), damping));
      }
    }
    predicted = predict(current);
    const double now = squares(steps, predicted);
    if (now < least) {
      best.efficiency = current;
      best.predicted = predicted;
      least = now;
    }
  }
  for (size_t k = 0; k < kCoefficients.size(); ++k) {
    if (!counts[k]) continue;
    for (const Factor factor : kCoefficients[k].factors) {
      best.fitted.push_back(factor);
      SourcedNumber& number = best.efficiency.factors[static_cast<size_t>(factor)];
      if (kCoefficients[k].is_seconds && number.value < 2 * kLeastSeconds) number.value = 0;
      number.source = fmt::format("fit of {} measured step{}", steps.size(), steps.size() == 1 ? "" : "s");
    }
  }
  return best;
}

}  // namespace artifex_devices::planner
