// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/failures/simulation.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <random>

namespace artifex_devices::planner {

namespace {

class SimulatedRun {
 public:
  SimulatedRun(const FailureModel& model, FailurePolicy policy, uint64_t seed)
      : model_(model), policy_(policy), random_(seed), next_failure_(time_to_failure()) {}

  PolicyOutcome simulate() {
    while (clock_ < model_.horizon) advance();
    sums_.useful += uncommitted_;  // the end of the horizon is not a failure
    const double total = model_.horizon;
    return {policy_,
            sums_.useful / total,
            0,
            0,
            sums_.saving / total,
            sums_.lost / total,
            sums_.waiting / total,
            sums_.missing / total};
  }

 private:
  // Not std::exponential_distribution, whose numbers differ between standard libraries.
  double time_to_failure() {
    const double uniform = (static_cast<double>(random_() >> 11U) + 0.5) * 0x1p-53;
    return -model_.mtbf * std::log(uniform);
  }

  double throughput() const noexcept {
    if (policy_ != FailurePolicy::kDropReplica) return 1;
    const auto replicas = static_cast<double>(model_.replicas);
    return (replicas - static_cast<double>(repairs_.size())) / replicas;
  }

  /// Runs to the end of a checkpoint, of a repair or of the horizon, or to a failure.
  void advance() {
    const double repaired =
        repairs_.empty() ? std::numeric_limits<double>::infinity() : std::max(repairs_.front(), clock_);
    const double segment = model_.interval + model_.save;
    const double seconds = std::min(segment - done_, std::min({next_failure_, repaired, model_.horizon}) - clock_);
    const double work = std::min(done_ + seconds, model_.interval) - std::min(done_, model_.interval);
    uncommitted_ += work * throughput();
    sums_.missing += work * (1 - throughput());
    sums_.saving += seconds - work;
    clock_ += seconds;
    done_ += seconds;
    if (done_ >= segment) {
      sums_.useful += uncommitted_;
      uncommitted_ = done_ = 0;
    }
    if (clock_ >= model_.horizon) return;
    if (clock_ >= repaired) {
      repairs_.pop_front();
      if (policy_ == FailurePolicy::kDropReplica) wait(model_.restore);  // the replica reads its state
    } else if (clock_ >= next_failure_) {
      next_failure_ = clock_ + time_to_failure();
      recover();
    }
  }

  void recover() {
    const auto used = static_cast<int64_t>(repairs_.size());
    switch (policy_) {
      case FailurePolicy::kSpare:
        if (used < model_.spares) {
          repairs_.push_back(clock_ + model_.repair);
          roll_back();
          return wait(model_.restore);
        }
        break;
      case FailurePolicy::kDropReplica:
        if (used + 1 < model_.replicas) {
          repairs_.push_back(clock_ + model_.repair);
          if (model_.keeps_state) return wait(model_.step);  // the step is computed again
          roll_back();
          return wait(model_.restore);
        }
        break;
      case FailurePolicy::kRestart:
        break;
    }
    roll_back();
    wait(model_.restart + model_.restore);
  }

  void roll_back() {
    sums_.lost += uncommitted_;
    uncommitted_ = done_ = 0;
  }

  /// Waits without failures for so many seconds; a failure begins the wait again.
  void wait(double seconds) {
    while (clock_ < model_.horizon) {
      const double until = std::min({clock_ + seconds, next_failure_, model_.horizon});
      sums_.waiting += until - clock_;
      const bool has_failed = until >= next_failure_ && until < clock_ + seconds;
      clock_ = until;
      if (!has_failed) return;
      next_failure_ = clock_ + time_to_failure();
    }
  }

  const FailureModel& model_;
  FailurePolicy policy_;
  std::mt19937_64 random_;
  double next_failure_;
  double clock_ = 0;
  double done_ = 0;             // seconds since the last checkpoint, of which the first `interval` are work
  double uncommitted_ = 0;      // useful seconds since the last checkpoint
  std::deque<double> repairs_;  // their ends
  PolicyOutcome sums_;          // in seconds
};

}  // namespace

PolicyOutcome simulate_run(const FailureModel& model, FailurePolicy policy, uint64_t seed) {
  return SimulatedRun(model, policy, seed).simulate();
}

}  // namespace artifex_devices::planner
