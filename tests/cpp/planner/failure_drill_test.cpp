// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "artifex_devices/base/error.h"
#include "artifex_planner/failures/drill.h"
#include "artifex_planner/failures/interval.h"

namespace artifex_devices::planner {
namespace {

FailureModel failing_run() {
  FailureModel model;
  model.mtbf = 20'000;
  model.save = 10;
  model.restore = 30;
  model.restart = 300;
  model.repair = 86'400;
  model.step = 10;
  model.horizon = 30 * 86'400.0;
  model.spares = 100;
  model.replicas = 100;
  model.keeps_state = true;
  model.runs = 200;
  model.seed = 1;
  return model;
}

TEST(CheckpointInterval, IsThatOfYoungAndDaly) {
  EXPECT_NEAR(young_interval(20'000, 10), 632.4555, 1e-4);
  const double part = std::sqrt(10.0 / 40'000);
  EXPECT_NEAR(daly_interval(20'000, 10), 632.4555 * (1 + part / 3 + part * part / 9) - 10, 1e-3);
  EXPECT_DOUBLE_EQ(daly_interval(10, 20), 20);
}

TEST(CheckpointInterval, TheBestOneHasTheLargestShare) {
  const double best = best_interval(20'000, 10, 330);
  EXPECT_NEAR(best / daly_interval(20'000, 10), 1, 1e-3);
  EXPECT_GT(useful_share(20'000, 10, 330, best), useful_share(20'000, 10, 330, best * 1.01));
  EXPECT_GT(useful_share(20'000, 10, 330, best), useful_share(20'000, 10, 330, best / 1.01));
  // Saves and lost work take sqrt(2 x 10 / 20,000), recoveries 330 / 20,000.
  EXPECT_NEAR(useful_share(20'000, 10, 330, best), 1 - std::sqrt(0.001) - 330 / 20'000.0, 2e-3);
}

TEST(FailureDrill, RestartsHaveTheExpectedShare) {
  const FailureDrill drill = drill_failures(failing_run());
  ASSERT_EQ(drill.outcomes.size(), 3U);
  for (const PolicyOutcome& each : drill.outcomes) {
    EXPECT_NEAR(each.useful + each.saving + each.lost + each.waiting + each.missing, 1, 1e-9);
    EXPECT_LT(each.low, each.useful);
    EXPECT_GT(each.high, each.useful);
  }
  EXPECT_NEAR(drill.outcomes[0].useful, drill.useful, 1e-3);
  EXPECT_NEAR(drill.simulated_interval / drill.daly_interval, 1, 0.5);
}

TEST(FailureDrill, SparesSaveTheRestart) {
  const FailureDrill drill = drill_failures(failing_run());
  EXPECT_NEAR(drill.outcomes[1].useful - drill.outcomes[0].useful, 300 / 20'000.0, 1e-3);
  FailureModel few = failing_run();
  few.spares = 1;  // in repair most of the time
  EXPECT_LT(drill_failures(few).outcomes[1].useful, drill.outcomes[0].useful + 0.005);
}

TEST(FailureDrill, DroppedReplicasMissTheirThroughput) {
  const FailureDrill drill = drill_failures(failing_run());
  const PolicyOutcome& dropped = drill.outcomes[2];
  EXPECT_DOUBLE_EQ(dropped.lost, 0);
  // 86,400 / 20,000 replicas of 100 are repaired at any time, later than the first day.
  EXPECT_NEAR(dropped.missing, 0.0432 * 29.5 / 30, 0.003);
  FailureModel sharded = failing_run();
  sharded.keeps_state = false;
  EXPECT_GT(drill_failures(sharded).outcomes[2].lost, 0.01);
}

TEST(FailureDrill, SeedsRepeat) {
  const double first = drill_failures(failing_run()).outcomes[0].useful;
  EXPECT_EQ(drill_failures(failing_run()).outcomes[0].useful, first);
  FailureModel other = failing_run();
  other.seed = 2;
  EXPECT_NE(drill_failures(other).outcomes[0].useful, first);
}

TEST(FailureDrill, PoliciesNeedSparesAndReplicas) {
  FailureModel alone = failing_run();
  alone.spares = 0;
  alone.replicas = 1;
  EXPECT_EQ(drill_failures(alone).outcomes.size(), 1U);
}

TEST(FailureDrill, RefusesTimesThatCannotBe) {
  for (const double bad : {0.0, -1.0, std::nan(""), 1e300}) {
    FailureModel wrong = failing_run();
    wrong.mtbf = bad;
    EXPECT_THROW(drill_failures(wrong), InvalidArgument);
  }
  FailureModel many = failing_run();
  many.mtbf = 1e-3;
  EXPECT_THROW(drill_failures(many), InvalidArgument);
}

}  // namespace
}  // namespace artifex_devices::planner
