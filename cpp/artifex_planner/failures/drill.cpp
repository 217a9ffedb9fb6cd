// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/failures/drill.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "artifex_devices/base/throw_error.h"
#include "artifex_planner/failures/interval.h"
#include "artifex_planner/failures/simulation.h"

namespace artifex_devices::planner {

namespace {

constexpr double kMostEvents = 1 << 28;
constexpr uint64_t kSeedStep = 0x9e3779b97f4a7c15;  // seeds beside each other share no run
constexpr double kMostSeconds = 1e12;               // seconds
constexpr int64_t kSearchedRuns = 64;               // of each interval
constexpr int kSearchedIntervals = 17;              // from a quarter of Daly's to four times it

void check_model(const FailureModel& model) {
  std::vector<std::string> wrong;
  for (const auto& [name, value] :
       {std::pair{"mtbf", model.mtbf}, std::pair{"save", model.save}, std::pair{"horizon", model.horizon}}) {
    if (!(value > 0 && value <= kMostSeconds)) wrong.push_back(fmt::format("{} is {} s", name, value));
  }
  for (const auto& [name, value] :
       {std::pair{"restore", model.restore}, std::pair{"restart", model.restart}, std::pair{"repair", model.repair},
        std::pair{"step", model.step}, std::pair{"interval", model.interval}}) {
    if (!(value >= 0 && value <= kMostSeconds)) wrong.push_back(fmt::format("{} is {} s", name, value));
  }
  for (const auto& [name, value] : {std::pair{"spares", model.spares}, std::pair{"replicas", model.replicas - 1},
                                    std::pair{"runs", model.runs - 1}}) {
    if (value < 0) wrong.push_back(fmt::format("{} is too small", name));
  }
  if (!wrong.empty()) {
    throw_error(
        "plan_failures: {}; expected mtbf, save and horizon above 0, other times of 0 or more, and at least "
        "one run and replica; correct them",
        fmt::join(wrong, "; "));
  }
}

PolicyOutcome simulate(const FailureModel& model, FailurePolicy policy, int64_t runs) {
  PolicyOutcome mean;
  mean.policy = policy;
  std::vector<double> useful;
  for (int64_t i = 0; i < runs; ++i) {
    const uint64_t seed = static_cast<uint64_t>(model.seed) * kSeedStep + static_cast<uint64_t>(i);
    const PolicyOutcome run = simulate_run(model, policy, seed);
    useful.push_back(run.useful);
    const auto count = static_cast<double>(runs);
    mean.useful += run.useful / count;
    mean.saving += run.saving / count;
    mean.lost += run.lost / count;
    mean.waiting += run.waiting / count;
    mean.missing += run.missing / count;
  }
  std::ranges::sort(useful);
  const auto percentile = [&](double part) {
    return useful[static_cast<size_t>(std::llround(part * static_cast<double>(runs - 1)))];
  };
  mean.low = percentile(0.05);
  mean.high = percentile(0.95);
  return mean;
}

double events_of(const FailureModel& model, int64_t runs) {
  return static_cast<double>(runs) * (model.horizon / (model.interval + model.save) + model.horizon / model.mtbf);
}

/// The interval whose simulated runs with restarts are the most useful. All intervals have the same failures.
double simulated_interval(FailureModel model) {
  const double middle = daly_interval(model.mtbf, model.save);
  double best = middle;
  double most = -1;
  for (int i = 0; i < kSearchedIntervals; ++i) {
    model.interval = middle * std::exp2(4.0 * i / (kSearchedIntervals - 1) - 2);
    const double useful = simulate(model, FailurePolicy::kRestart, std::min(model.runs, kSearchedRuns)).useful;
    if (useful > most) {
      most = useful;
      best = model.interval;
    }
  }
  return best;
}

}  // namespace

FailureDrill drill_failures(const FailureModel& given) {
  check_model(given);
  FailureModel model = given;
  FailureDrill drill;
  const double recovery = model.restart + model.restore;
  drill.young_interval = young_interval(model.mtbf, model.save);
  drill.daly_interval = daly_interval(model.mtbf, model.save);
  if (model.interval <= 0) model.interval = best_interval(model.mtbf, model.save, recovery);
  drill.interval = model.interval;
  drill.useful = useful_share(model.mtbf, model.save, recovery, model.interval);
  FailureModel shortest = model;
  shortest.interval = std::min(model.interval, drill.daly_interval / 4);
  const double events =
      3 * events_of(model, model.runs) + kSearchedIntervals * events_of(shortest, std::min(model.runs, kSearchedRuns));
  if (!(events <= kMostEvents)) {
    throw_error(
        "plan_failures: {} runs of {} s have {:.2g} checkpoints and failures; expected at most {:.2g}; simulate "
        "fewer runs or days",
        model.runs, model.horizon, events, kMostEvents);
  }
  drill.simulated_interval = simulated_interval(model);
  drill.outcomes.push_back(simulate(model, FailurePolicy::kRestart, model.runs));
  if (model.spares > 0) drill.outcomes.push_back(simulate(model, FailurePolicy::kSpare, model.runs));
  if (model.replicas > 1) drill.outcomes.push_back(simulate(model, FailurePolicy::kDropReplica, model.runs));
  return drill;
}

}  // namespace artifex_devices::planner
