// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/cost/groups.h"

#include <gtest/gtest.h>

#include "../base/message_of.h"
#include "artifex_devices/base/error.h"
#include "artifex_planner/cost/device_rates.h"
#include "made_clusters.h"

namespace artifex_devices::planner {
namespace {

const TorusGroup& torus_of(const std::optional<NodeGroup>& group) { return std::get<TorusGroup>(group.value().local); }

TEST(PlacedGroup, FindsBoxesOfATorus) {
  const ClusterRef cluster = made_cluster(NetworkKind::kTorus, {4, 8}, {false, true});
  const std::optional<NodeGroup> row = placed_group(*cluster, {0, 1, 2, 3});
  EXPECT_EQ(devices_of(row.value()), 4);
  EXPECT_EQ(torus_of(row).link, 100);
  EXPECT_EQ(torus_of(row).latency.step, 1);
  EXPECT_FALSE(torus_of(row).axes[0].wrap);
  const TorusGroup column = torus_of(placed_group(*cluster, {0, 4, 8, 12, 16, 20, 24, 28}));
  EXPECT_EQ(column.axes[1].size, 8);
  EXPECT_TRUE(column.axes[1].wrap);
  const TorusGroup every_second = torus_of(placed_group(*cluster, {24, 8, 0, 16}));
  EXPECT_EQ(every_second.axes[1].size, 4);
  EXPECT_EQ(every_second.axes[1].stride, 2);
  EXPECT_TRUE(every_second.axes[1].wrap);
  EXPECT_FALSE(torus_of(placed_group(*cluster, {0, 4, 8, 12})).axes[1].wrap);  // half of it
}

TEST(PlacedGroup, RejectsSetsThatAreNotBoxes) {
  const ClusterRef cluster = made_cluster(NetworkKind::kTorus, {4, 4}, {false, false}, 2);
  EXPECT_FALSE(placed_group(*cluster, {0, 1, 4}));       // an angle
  EXPECT_FALSE(placed_group(*cluster, {0, 1, 3}));       // a gap
  EXPECT_FALSE(placed_group(*cluster, {0, 5}));          // a diagonal
  EXPECT_FALSE(placed_group(*cluster, {0, 1, 16}));      // of one slice more
  EXPECT_FALSE(placed_group(*cluster, {0, 1, 16, 20}));  // another box there
}

TEST(PlacedGroup, TreatsSlicesAsNodes) {
  const ClusterRef cluster = made_cluster(NetworkKind::kSwitch, {8}, {}, 4);
  const std::optional<NodeGroup> all = placed_group(*cluster, {0, 1, 8, 9, 16, 17, 24, 25});
  EXPECT_EQ(all.value().nodes, 4);
  EXPECT_EQ(std::get<SwitchGroup>(all.value().local).devices, 2);
  EXPECT_EQ(all.value().egress, 10);
  EXPECT_EQ(all.value().latency.step, 2);
  const std::optional<NodeGroup> across = placed_group(*cluster, {3, 11, 19, 27});
  EXPECT_EQ(across.value().nodes, 4);
  EXPECT_EQ(devices_of(across.value().local), 1);
  EXPECT_TRUE(placed_group(*cluster, {5}));
}

TEST(PlacedGroup, SharesLinksBetweenDevicesOfAChip) {
  const ClusterRef cluster = made_cluster(NetworkKind::kTorus, {4}, {true}, 1, 2);
  EXPECT_EQ(torus_of(placed_group(*cluster, {0, 1, 2, 3, 4, 5, 6, 7})).link, 100);
  EXPECT_EQ(devices_of(placed_group(*cluster, {0, 1, 2, 3, 4, 5, 6, 7}).value()), 4);
  EXPECT_EQ(torus_of(placed_group(*cluster, {0, 2, 4, 6})).link, 50);
  EXPECT_FALSE(placed_group(*cluster, {0, 1, 2}));
}

TEST(PlacedGroup, RefusesInvalidSets) {
  const ClusterRef cluster = made_cluster(NetworkKind::kFullMesh, {4}, {});
  EXPECT_THROW(placed_group(*cluster, {}), InvalidArgument);
  EXPECT_THROW(placed_group(*cluster, {0, 4}), InvalidArgument);
  EXPECT_THROW(placed_group(*cluster, {-1}), InvalidArgument);
  EXPECT_THROW(placed_group(*cluster, {1, 1}), InvalidArgument);
}

TEST(MeshGroup, NamesTheOperationWhereItIsNotABox) {
  const ClusterRef cluster = made_cluster(NetworkKind::kTorus, {4}, {false});
  EXPECT_EQ(devices_of(mesh_group(*cluster, {0, 1}, "plan_step")), 2);
  EXPECT_TRUE(message_of([&] {
                mesh_group(*cluster, {0, 1, 3}, "plan_step");
              }).starts_with("plan_step: the 3 devices of a group of the mesh, 0 first, are not a box"));
}

TEST(SlowestCosts, AreThoseOfTheFirstSlowestGroup) {
  const ClusterRef cluster = made_cluster(NetworkKind::kTorus, {4}, {false}, 2);
  const std::vector<NodeGroup> groups = {placed_group(*cluster, {0, 1}).value(), placed_group(*cluster, {0, 4}).value(),
                                         placed_group(*cluster, {1, 5}).value()};
  const std::vector<TransferCost> slowest = slowest_costs(CollectiveOp::kAllGather, 100, groups);
  const std::vector<TransferCost> between = collective_costs(CollectiveOp::kAllGather, 100, groups[1]);
  ASSERT_EQ(slowest.size(), between.size());
  EXPECT_EQ(slowest.front().seconds(), between.front().seconds());
  EXPECT_EQ(slowest.front().limit, "network");
}

TEST(DeviceRates, RefuseAFormatWithoutAPeak) {
  DeviceRates rates;
  rates.operation = "plan_inference";
  rates.peak_flops[static_cast<size_t>(MatmulFormat::kBFloat16)] = 1e12;
  EXPECT_EQ(rates.peak(MatmulFormat::kBFloat16), 1e12);
  EXPECT_EQ(message_of([&] { rates.peak(MatmulFormat::kFloat16); }),
            "plan_inference: no source publishes FLOP/s of float16 for this chip; expected a format with a published "
            "number; give the operations another dtype, or a cluster with this figure");
}

}  // namespace
}  // namespace artifex_devices::planner
