// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "artifex_devices/base/error.h"
#include "artifex_planner/collective/bound.h"
#include "artifex_planner/cost/groups.h"
#include "made_clusters.h"

namespace artifex_devices::planner {
namespace {

using Groups = std::vector<std::vector<int64_t>>;

TEST(CollectiveBound, FormsGroupsAlongTheAxesInOrder) {
  const ClusterRef torus = made_cluster(NetworkKind::kTorus, {3, 2}, {false, false}, 2);
  EXPECT_EQ(groups_along(*torus, {"x"}), (Groups{{0, 1, 2}, {3, 4, 5}, {6, 7, 8}, {9, 10, 11}}));
  EXPECT_EQ(groups_along(*torus, {"x", "y"})[0], (std::vector<int64_t>{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(groups_along(*torus, {"x", "y"}, true)[1], (std::vector<int64_t>{6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(groups_along(*torus, {"y", "slice"})[1], (std::vector<int64_t>{1, 7, 4, 10}));
  const ClusterRef cores = made_cluster(NetworkKind::kSwitch, {2}, {}, 1, 2);
  EXPECT_EQ(groups_along(*cores, {"chip"}), (Groups{{0, 1, 2, 3}}));
  EXPECT_THROW(groups_along(*cores, {"x"}), InvalidArgument);
  EXPECT_THROW(groups_along(*torus, {"x", "x"}), InvalidArgument);
}

TEST(CollectiveBound, CountsBytesThatNoDeviceOfAChipOrSliceHolds) {
  const ClusterRef cluster = made_cluster(NetworkKind::kSwitch, {2}, {}, 2, 2);  // 8 devices, 4 chips
  const CollectiveBound all = collective_bound(CollectiveOp::kAllGather, 800, *cluster, {{0, 1, 2, 3, 4, 5, 6, 7}});
  EXPECT_EQ(all.device_bytes, 700);
  EXPECT_EQ(all.chip_bytes, 600);
  EXPECT_EQ(all.slice_bytes, 400);
  EXPECT_EQ(all.slices, 2);
  // Two groups with a core of each chip: what they bring adds up.
  const CollectiveBound two = collective_bound(CollectiveOp::kAllReduce, 800, *cluster, {{0, 2, 4, 6}, {1, 3, 5, 7}});
  EXPECT_EQ(two.device_bytes, 1200);
  EXPECT_EQ(two.chip_bytes, 2400);
  EXPECT_EQ(two.slice_bytes, 1600);
  EXPECT_EQ(collective_bound(CollectiveOp::kAllReduce, 800, *cluster, {{0, 2, 4, 6}}, 2).slice_bytes, 1600);
}

TEST(CollectiveBound, CountsTheLinksOfTorusCorners) {
  const ClusterRef mesh = made_cluster(NetworkKind::kTorus, {4, 4}, {false, false});
  const CollectiveBound bound =
      collective_bound(CollectiveOp::kAllGather, 1600, *mesh, groups_along(*mesh, {"x", "y"}));
  EXPECT_EQ(bound.chip_bytes, 1500);
  // Two links of 100 bytes/s: what the formula of the mesh takes too.
  EXPECT_DOUBLE_EQ(least_seconds(*mesh, bound.bytes_by_chip, bound.slice_bytes, bound.slices), 7.5);
  const auto placed = placed_group(*mesh, groups_along(*mesh, {"x", "y"})[0]);
  EXPECT_DOUBLE_EQ(collective_costs(CollectiveOp::kAllGather, 1600, placed.value()).front().transfer, 7.5);
  // A chip inside sends more than one at a corner receives.
  const PermuteCost far = permute_cost(200, {{0, 5}}, *mesh, groups_along(*mesh, {"y", "x"}));
  EXPECT_EQ(far.bound.bytes_by_chip[0], 200);
  EXPECT_EQ(far.bound.bytes_by_chip[5], 200);
  EXPECT_DOUBLE_EQ(least_seconds(*mesh, far.bound.bytes_by_chip, 0, 1), 1);
}

TEST(CollectiveBound, IsBelowEveryAlgorithm) {
  const std::vector<ClusterRef> clusters = {made_cluster(NetworkKind::kTorus, {8, 4}, {true, false}),
                                            made_cluster(NetworkKind::kTorus, {4, 4, 2}, {true, true, false}, 2),
                                            made_cluster(NetworkKind::kSwitch, {8}, {}, 3),
                                            made_cluster(NetworkKind::kFullMesh, {4}, {}, 4),
                                            made_cluster(NetworkKind::kTorus, {4}, {true}, 2, 2),
                                            made_cluster(NetworkKind::kTorus, {4, 4}, {false, false}, 2)};
  int compared = 0;
  for (const ClusterRef& cluster : clusters) {
    const bool is_torus = cluster->inside().kind == NetworkKind::kTorus;
    const std::string inner = is_torus ? "x" : "chip";
    for (const std::vector<std::string>& axes : {std::vector<std::string>{inner}, {"slice"}, {"slice", inner}}) {
      const Groups groups = groups_along(*cluster, axes);
      for (const CollectiveOp op : {CollectiveOp::kAllGather, CollectiveOp::kReduceScatter, CollectiveOp::kAllReduce,
                                    CollectiveOp::kAllToAll, CollectiveOp::kBroadcast}) {
        const CollectiveBound bound = collective_bound(op, 1e6, *cluster, groups);
        const double least = least_seconds(*cluster, bound.bytes_by_chip, bound.slice_bytes, bound.slices);
        const auto placed = placed_group(*cluster, groups[0]);
        ASSERT_TRUE(placed);
        EXPECT_GE(collective_costs(op, 1e6, *placed).front().transfer * (1 + 1e-12), least) << to_string(op);
        ++compared;
      }
    }
  }
  EXPECT_EQ(compared, 90);
}

TEST(CollectiveBound, BoundsPermutesByTheirMessages) {
  const ClusterRef ring = made_cluster(NetworkKind::kTorus, {8}, {true});
  PermutePairs shift;
  for (int64_t i = 0; i < 8; ++i) shift.emplace_back(i, (i + 3) % 8);
  const PermuteCost cost = permute_cost(50, shift, *ring, groups_along(*ring, {"x"}));
  EXPECT_DOUBLE_EQ(cost.price.expected.transfer, 3 * 50 / 100.0);  // each link carries three blocks
  EXPECT_DOUBLE_EQ(cost.price.expected.latency, 3);
  EXPECT_EQ(cost.bound.device_bytes, 50);
  EXPECT_EQ(cost.bound.chip_bytes, 50);

  const PermuteCost stays = permute_cost(50, {{2, 2}}, *ring, groups_along(*ring, {"x"}));
  EXPECT_EQ(stays.price.expected.seconds(), 0);
  EXPECT_EQ(stays.price.expected.algorithm, "none");
  EXPECT_EQ(stays.bound.device_bytes, 0);

  // All chips of a host send over its network at once.
  const ClusterRef nodes = made_cluster(NetworkKind::kSwitch, {4}, {}, 2);
  const PermuteCost across = permute_cost(50, {{0, 1}, {1, 0}}, *nodes, groups_along(*nodes, {"slice"}));
  EXPECT_DOUBLE_EQ(across.price.expected.transfer, 5);  // 2 x 50 bytes out of a host of 2 x 10 bytes/s
  EXPECT_EQ(across.bound.slice_bytes, 200);
  EXPECT_DOUBLE_EQ(least_seconds(*nodes, across.bound.bytes_by_chip, across.bound.slice_bytes, across.bound.slices), 5);
}

TEST(CollectiveBound, RefusesPairsThatAreNotAPermutation) {
  const ClusterRef ring = made_cluster(NetworkKind::kTorus, {4}, {true});
  const Groups groups = groups_along(*ring, {"x"});
  EXPECT_THROW(permute_cost(1, {{0, 4}}, *ring, groups), InvalidArgument);
  EXPECT_THROW(permute_cost(1, {{-1, 0}}, *ring, groups), InvalidArgument);
  EXPECT_THROW(permute_cost(1, {{0, 1}, {0, 2}}, *ring, groups), InvalidArgument);
  EXPECT_THROW(permute_cost(1, {{0, 1}, {2, 1}}, *ring, groups), InvalidArgument);
}

TEST(CollectiveBound, RefusesPermutesOfDevicesOutsideTheCluster) {
  const ClusterRef ring = made_cluster(NetworkKind::kTorus, {4}, {true});
  for (const Groups& groups : {Groups{{0, 4}}, Groups{{0, -1}}, Groups{{0, 1}, {2}}}) {
    try {
      permute_cost(1, {{0, 1}}, *ring, groups);
      FAIL();
    } catch (const InvalidArgument& error) {
      EXPECT_TRUE(std::string_view(error.what()).starts_with("plan_collective: ")) << error.what();
    }
  }
}

}  // namespace
}  // namespace artifex_devices::planner
