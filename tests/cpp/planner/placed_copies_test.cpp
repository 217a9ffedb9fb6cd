// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/reshard/placed_copies.h"

#include <gtest/gtest.h>

#include "../array/worlds.h"
#include "artifex_devices/base/error.h"
#include "artifex_devices/cluster/cluster_presets.h"
#include "artifex_devices/device/cluster_client.h"

namespace artifex_devices::planner {
namespace {

using test::error_of;
using test::make_world;
using test::named;

TEST(PlacedCopies, PlansTheCopiesBetweenMemoriesOfThisProcess) {
  const ClientRef world = make_world(4, 4);
  const PlacedCopies placed = placed_copies(*named(world, {4}, {"a"}), *named(world, {4}, {}), {8}, 4, nullptr);
  EXPECT_EQ(placed.direct.plan.copy_count(), 16);
  EXPECT_EQ(placed.direct.bytes_in, (std::vector<int64_t>{24, 24, 24, 24}));
  EXPECT_EQ(placed.source.devices, (std::vector<int64_t>{0, 1, 2, 3}));
}

TEST(PlacedCopies, HasOneBufferForReplicasInOneMemory) {
  const ClientRef world = make_world(1, 4);
  const PlacedCopies placed = placed_copies(*named(world, {4}, {"a"}), *named(world, {4}, {}), {8}, 4, nullptr);
  EXPECT_EQ(placed.destination.buffers, std::vector<PlaceId>(4, PlaceId(0)));
  EXPECT_EQ(placed.direct.plan.copy_count(), 4);
}

TEST(PlacedCopies, PlansOnTheClusterOfTheDevices) {
  const ClusterRef cluster = tpu_cluster("v5e", {2, 2}, 1);
  const ClientRef client = make_cluster_client(cluster);
  const ShardingRef rows = named(client, {4}, {"a"});
  EXPECT_EQ(cluster_for(nullptr, *rows, *rows), cluster);
  const PlacedCopies placed = placed_copies(*rows, *named(client, {4}, {}), {8}, 4, cluster.get());
  EXPECT_EQ(placed.direct.plan.copy_count(), 16);
}

TEST(PlacedCopies, UsesTheGivenClusterOrThatOfEitherEnd) {
  const ClusterRef cluster = tpu_cluster("v5e", {2, 2}, 1);
  const ClientRef client = make_cluster_client(cluster);
  const ClientRef world = make_world(1, 4);
  const ShardingRef abstract = NamedSharding::make_abstract(AbstractMesh({AxisName("a")}, {4}), PartitionSpec());
  const ShardingRef here = named(world, {4}, {});
  const ShardingRef there = named(client, {4}, {});
  EXPECT_EQ(cluster_for(cluster, *here, *here), cluster);
  EXPECT_EQ(cluster_for(nullptr, *abstract, *there), cluster);
  EXPECT_EQ(cluster_for(nullptr, *here, *here), nullptr);
  EXPECT_EQ(device_ids(*abstract), (std::vector<int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(error_of<InvalidArgument>([&] { cluster_for(nullptr, *here, *there); }),
            "plan_reshard: the ends are on devices of this process and " + cluster->name() +
                "; expected devices of one cluster, or of this process; give cluster= to plan on");
}

TEST(PlacedCopies, RefusesTooManyDevicesOrCopies) {
  const ClientRef world = make_world(8, 8);
  const ShardingRef rows = named(world, {8}, {"a"});
  const ClusterRef cluster = tpu_cluster("v5e", {2, 2}, 1);
  EXPECT_EQ(error_of<InvalidArgument>([&] { check_size(*rows, cluster.get()); }),
            "plan_reshard: the mesh has 8 devices, the cluster " + cluster->name() +
                " has 4; expected at most these; take a larger cluster");
  EXPECT_NO_THROW(check_size(*rows, nullptr));
  EXPECT_EQ(error_of<InvalidArgument>([&] { placed_copies(*rows, *named(world, {8}, {}), {8}, 4, nullptr, 10); }),
            "plan_reshard: there are about 64 direct copies; expected at most 10 to plan one by one; ask for them by "
            "way=\"copies\", which takes seconds");
}

}  // namespace
}  // namespace artifex_devices::planner
