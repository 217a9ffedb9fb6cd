// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "artifex_devices/base/error.h"
#include "artifex_planner/step/network.h"
#include "made_clusters.h"

namespace artifex_devices::planner {
namespace {

TEST(StepNetwork, FindsTheGroupsOfAMesh) {
  const ClusterRef cluster = made_cluster(NetworkKind::kTorus, {4, 2}, {true, false});
  const StepNetwork network = step_network(*cluster, {2, 4}, {0, 1, 2, 3, 4, 5, 6, 7}, {1, 2, 3});
  EXPECT_TRUE(network.groups[0].empty());
  ASSERT_EQ(network.groups[2].size(), 1U);  // both rows are alike
  EXPECT_EQ(devices_of(network.groups[1][0]), 2);
  EXPECT_EQ(devices_of(network.groups[2][0]), 4);
  EXPECT_EQ(devices_of(network.groups[3][0]), 8);
  EXPECT_THROW(step_network(*cluster, {2, 4}, {0, 5, 2, 3, 4, 1, 6, 7}, {2}), InvalidArgument);
  EXPECT_THROW(step_network(*cluster, {2, 4}, {0, 1, 2}, {2}), InvalidArgument);
}

TEST(StepNetwork, FindsEveryKindOfGroup) {
  // Pairs of neighbours by number; where a row of 3 ends they have the same distance but do not form boxes.
  const ClusterRef rows = made_cluster(NetworkKind::kTorus, {3, 4}, {false, true});
  EXPECT_THROW(step_network(*rows, {6, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, {2}), InvalidArgument);
  EXPECT_EQ(step_network(*rows, {4, 3}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, {2}).groups[2].size(), 1U);
  // Neighbours in one row, every second chip of a column in the other.
  const ClusterRef square = made_cluster(NetworkKind::kTorus, {2, 4}, {false, true});
  const StepNetwork mixed = step_network(*square, {4, 2}, {0, 4, 1, 5, 2, 3, 6, 7}, {2});
  ASSERT_EQ(mixed.groups[2].size(), 2U);
  EXPECT_EQ(std::get<TorusGroup>(mixed.groups[2][0].local).axes[1].stride, 2);
  EXPECT_EQ(std::get<TorusGroup>(mixed.groups[2][1].local).axes[0].size, 2);
  // Across slices, and over the end of a slice.
  const ClusterRef slices = made_cluster(NetworkKind::kSwitch, {3}, {}, 2);
  EXPECT_EQ(step_network(*slices, {3, 2}, {0, 3, 1, 4, 2, 5}, {2}).groups[2].size(), 1U);
  const StepNetwork uneven = step_network(*slices, {3, 2}, {0, 1, 2, 3, 4, 5}, {2});
  ASSERT_EQ(uneven.groups[2].size(), 2U);  // 2 and 3 are in two slices
  EXPECT_EQ(uneven.groups[2][1].nodes, 2);
}

}  // namespace
}  // namespace artifex_devices::planner
