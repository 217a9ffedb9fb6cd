// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "artifex_devices/base/error.h"
#include "artifex_planner/collective/plan.h"
#include "made_clusters.h"

namespace artifex_devices::planner {
namespace {

TEST(CollectiveBytes, CountOneDevice) {
  const auto bytes = [](std::string_view op) {
    const CollectiveBytes found = collective_bytes(op, 100, 4);
    return std::pair(found.received, found.peak);
  };
  EXPECT_EQ(bytes("all_gather"), std::pair(75.0, 125.0));
  EXPECT_EQ(bytes("reduce_scatter"), std::pair(75.0, 125.0));
  EXPECT_EQ(bytes("all_reduce"), std::pair(150.0, 200.0));
  EXPECT_EQ(bytes("all_to_all"), std::pair(18.75, 50.0));
  EXPECT_EQ(bytes("permute"), std::pair(25.0, 50.0));
  EXPECT_EQ(collective_bytes("permute", 100, 1).received, 0);
}

TEST(PlanCollective, PricesOneOfTheGroupsAlongAnAxis) {
  const ClusterRef cluster = made_cluster(NetworkKind::kTorus, {4, 2}, {false, false});
  const PlannedCollective planned = plan_collective("all_gather", 400, *cluster, {"x"}, {}, {});
  EXPECT_EQ(planned.devices, 4);
  EXPECT_EQ(planned.groups, 1);
  EXPECT_EQ(planned.costs.front().algorithm, "line, both directions");
  EXPECT_EQ(planned.costs.front().transfer, 3);  // 300 bytes into the end of a line
  EXPECT_EQ(planned.bytes.received, 300);
  EXPECT_TRUE(planned.bound.seconds);
}

TEST(PlanCollective, TakesTheSlowestGroup) {
  const ClusterRef cluster = made_cluster(NetworkKind::kTorus, {8}, {true});
  const PlannedCollective planned = plan_collective("all_gather", 400, *cluster, {}, {{0, 1, 2, 3}, {0, 2, 4, 6}}, {});
  const PlannedCollective slow = plan_collective("all_gather", 400, *cluster, {}, {{0, 1, 2, 3}}, {});
  EXPECT_EQ(planned.groups, 2);
  EXPECT_GE(planned.costs.front().seconds(), slow.costs.front().seconds());
}

TEST(PlanCollective, CountsThePermutesOfAllGroups) {
  const ClusterRef cluster = made_cluster(NetworkKind::kTorus, {4, 2}, {false, false});
  const PlannedCollective planned = plan_collective("permute", 400, *cluster, {"x"}, {}, {{0, 1}, {1, 2}});
  EXPECT_EQ(planned.groups, 2);
  EXPECT_EQ(planned.bytes.received, 100);
  EXPECT_EQ(planned.costs.size(), 1U);
}

TEST(PlanCollective, RefusesOtherNamesAndGroupsThatAreNotBoxes) {
  const ClusterRef cluster = made_cluster(NetworkKind::kTorus, {8}, {true});
  EXPECT_THROW(plan_collective("gather", 1, *cluster, {"x"}, {}, {}), InvalidArgument);
  EXPECT_THROW(plan_collective("all_gather", 1, *cluster, {}, {{0, 1, 3}}, {}), InvalidArgument);
}

}  // namespace
}  // namespace artifex_devices::planner
