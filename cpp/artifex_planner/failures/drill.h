// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "artifex_planner/fields.h"
#include "artifex_planner/kind_names.h"

namespace artifex_devices::planner {

/// What a run does after a failure. With each policy, failures during a recovery begin it again.
enum class FailurePolicy : uint8_t {
  kRestart,      // all devices restart, and restore the last checkpoint
  kSpare,        // a spare takes the failed node's place, and all restore the last checkpoint; without one: restart
  kDropReplica,  // the other replicas go on without the failed one until it is repaired
};
inline constexpr int kFailurePolicyCount = 3;
template <>
inline constexpr std::array<std::string_view, 3> kKindNames<FailurePolicy>{"restart", "spare", "drop-a-replica"};

/// Times in seconds.
struct FailureModel {
  double mtbf = 0;           // mean time between failures of the run
  double save = 0;           // that training stops for a checkpoint
  double restore = 0;        // to read a checkpoint
  double restart = 0;        // to notice a failure and to start all processes again
  double repair = 0;         // until a failed node is a spare again, or its replica returns
  double step = 0;           // of one training step
  double interval = 0;       // of work between checkpoints; 0: the best one
  double horizon = 0;        // simulated time of a run
  int64_t spares = 0;        // nodes
  int64_t replicas = 1;      // of the model
  bool keeps_state = false;  // whether the other replicas hold all that a failed replica holds
  int64_t runs = 1;          // simulated runs
  int64_t seed = 0;
};
void visit_fields(FieldsOf<FailureModel> auto& model, const auto& visit) {
  visit("mtbf", model.mtbf);
  visit("save", model.save);
  visit("restore", model.restore);
  visit("restart", model.restart);
  visit("repair", model.repair);
  visit("step", model.step);
  visit("interval", model.interval);
  visit("horizon", model.horizon);
  visit("spares", model.spares);
  visit("replicas", model.replicas);
  visit("keeps_state", model.keeps_state);
  visit("runs", model.runs);
  visit("seed", model.seed);
}

/// Mean parts of the time of the simulated runs, which sum to 1, and percentiles of the useful part.
struct PolicyOutcome {
  FailurePolicy policy = FailurePolicy::kRestart;
  double useful = 0;
  double low = 0;      // 5th percentile of the runs
  double high = 0;     // 95th percentile
  double saving = 0;   // checkpoints
  double lost = 0;     // work that is done again
  double waiting = 0;  // restarts and restores
  double missing = 0;  // throughput of dropped replicas
};
void visit_fields(FieldsOf<PolicyOutcome> auto& outcome, const auto& visit) {
  visit("policy", outcome.policy);
  visit("useful", outcome.useful);
  visit("low", outcome.low);
  visit("high", outcome.high);
  visit("saving", outcome.saving);
  visit("lost", outcome.lost);
  visit("waiting", outcome.waiting);
  visit("missing", outcome.missing);
}

struct FailureDrill {
  double interval = 0;            // that the outcomes have
  double young_interval = 0;      // young_interval()
  double daly_interval = 0;       // daly_interval()
  double simulated_interval = 0;  // the best one of the simulated runs with restarts
  double useful = 0;              // useful_share() of restarts with `interval`
  std::vector<PolicyOutcome> outcomes;
};
void visit_fields(FieldsOf<FailureDrill> auto& drill, const auto& visit) {
  visit("interval", drill.interval);
  visit("young_interval", drill.young_interval);
  visit("daly_interval", drill.daly_interval);
  visit("simulated_interval", drill.simulated_interval);
  visit("useful", drill.useful);
  visit("outcomes", drill.outcomes);
}

/// Simulates the policies, those of spares and replicas only where the model has any. The same seed has the same
/// failures with each policy and on each machine. Throws InvalidArgument for times that are not above 0 (`restore`,
/// `restart`, `repair`, `step` and `interval` may be 0), and for more than 2^28 checkpoints and failures in all runs.
FailureDrill drill_failures(const FailureModel& model);

}  // namespace artifex_devices::planner
