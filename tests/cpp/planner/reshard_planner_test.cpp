// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "../array/worlds.h"
#include "artifex_devices/base/error.h"
#include "artifex_devices/cluster/cluster_presets.h"
#include "artifex_devices/device/cluster_client.h"
#include "artifex_planner/reshard/plan.h"

namespace artifex_devices::planner {
namespace {

using test::error_of;
using test::make_world;
using test::named;

struct Pod {
  ClusterRef cluster = tpu_cluster("v5e", {4, 4}, 1);
  ClientRef client = make_cluster_client(cluster);
  ShardingRef rows = named(client, {4, 4}, {"a", ""});
  ShardingRef columns = named(client, {4, 4}, {"", "a"});
};

TEST(PlanReshard, PlansCopiesBetweenDevicesOfThisProcess) {
  const ClientRef world = make_world(4, 4);
  const PlannedReshard planned = plan_reshard({8}, 4, *named(world, {4}, {"a"}), *named(world, {4}, {}), {});
  EXPECT_EQ(planned.cluster, nullptr);
  EXPECT_EQ(planned.plan.strategy, ReshardStrategy::kCopies);
  ASSERT_EQ(planned.plan.steps.size(), 1U);
  EXPECT_EQ(planned.plan.steps[0].text, "16 direct copies");
  EXPECT_EQ(planned.plan.steps[0].shard_bytes, 8);
  EXPECT_EQ(planned.plan.steps[0].shard_bytes_after, 32);
  EXPECT_FALSE(planned.plan.steps[0].price);
  EXPECT_NE(planned.plan.steps[0].why_no_price.find("give cluster="), std::string::npos);
  EXPECT_EQ(planned.plan.bytes_received, 96);
  EXPECT_EQ(planned.plan.busiest_bytes, 24);
  EXPECT_EQ(planned.plan.bytes_in(), (std::vector<int64_t>{24, 24, 24, 24}));
  ASSERT_TRUE(planned.other);
  EXPECT_EQ(planned.other->steps[0].text, "all-gather dimension 0 over a");
  EXPECT_EQ(planned.other->bytes_in(), planned.plan.bytes_in());
  EXPECT_EQ(planned.lower_bound.busiest_bytes, 24);
}

TEST(PlanReshard, TakesTheFasterStrategyOnACluster) {
  const Pod pod;
  const PlannedReshard planned = plan_reshard({64, 64}, 4, *pod.rows, *pod.columns, {});
  EXPECT_EQ(planned.cluster, pod.cluster);
  ASSERT_TRUE(planned.other);
  const auto seconds = [](const PlannedStrategy& plan) {
    double sum = 0;
    for (const PlannedReshardStep& step : plan.steps) sum += step.price.value().expected.seconds();
    return sum;
  };
  EXPECT_LE(seconds(planned.plan), seconds(*planned.other));
  EXPECT_GE(seconds(planned.plan), planned.lower_bound.seconds.value());
  EXPECT_EQ(planned.xla_gathers, false);
}

TEST(PlanReshard, NamesWholeAxesAndPartsOfThem) {
  const ClusterRef cluster = tpu_cluster("v5e", {4, 4}, 1);
  const ClientRef client = make_cluster_client(cluster);
  const ReshardRequest request{.strategy = ReshardStrategy::kCollectives};
  const PlannedReshard whole =
      plan_reshard({16, 16}, 4, *named(client, {4, 4}, {"a", ""}), *named(client, {4, 4}, {"", "a"}), request);
  EXPECT_EQ(whole.plan.steps[0].text, "all-to-all over a: dimension 0 to 1");
  const PlannedReshard part =
      plan_reshard({16, 16}, 4, *named(client, {4, 4}, {"a", ""}), *named(client, {2, 8}, {"a", ""}), request);
  ASSERT_EQ(part.plan.steps.size(), 1U);
  EXPECT_EQ(part.plan.steps[0].text, "all-gather dimension 0 over a.1");
}

TEST(PlanReshard, KeepsToTheMemoryLimit) {
  const Pod pod;
  const ReshardRequest copies{.memory_limit = 100, .strategy = ReshardStrategy::kCopies};
  EXPECT_EQ(error_of<InvalidArgument>([&] { plan_reshard({64, 64}, 4, *pod.rows, *pod.columns, copies); }),
            "plan_reshard: memory_limit is 100 bytes; expected at least 8192 bytes for direct copies, on each device; "
            "raise the limit or use more devices");
  const std::string both =
      error_of<InvalidArgument>([&] { plan_reshard({64, 64}, 4, *pod.rows, *pod.columns, {.memory_limit = 100}); });
  EXPECT_NE(both.find("for direct copies"), std::string::npos) << both;
  EXPECT_NE(both.find("; plan_reshard: "), std::string::npos) << both;
}

TEST(PlanReshard, GivesTheReasonForNoOtherStrategy) {
  const ClientRef world = make_world(1, 4);
  const ShardingRef uneven = named(world, {4}, {"a"}, Uneven::kLastShort);
  const PlannedReshard planned = plan_reshard({6}, 4, *uneven, *named(world, {4}, {}), {});
  EXPECT_FALSE(planned.other);
  EXPECT_NE(planned.why_no_other.find("uneven shards have no sequence of collectives"), std::string::npos);
  EXPECT_FALSE(planned.xla_gathers);
  EXPECT_NE(planned.why_xla_is_not_known.find("shards are uneven"), std::string::npos);
}

TEST(PlanReshard, NeedsDevicesOrAClusterThatHasThem) {
  const ShardingRef abstract = NamedSharding::make_abstract(AbstractMesh({AxisName("a")}, {4}), PartitionSpec());
  EXPECT_EQ(error_of<InvalidArgument>([&] { plan_reshard({8}, 4, *abstract, *abstract, {}); }),
            "plan_reshard: a mesh without devices has no network; expected a cluster; give cluster=, or a mesh of "
            "devices");
  const Pod pod;
  const PlannedReshard planned = plan_reshard({8}, 4, *abstract, *abstract, {.cluster = pod.cluster});
  EXPECT_TRUE(planned.plan.steps.empty());
}

}  // namespace
}  // namespace artifex_devices::planner
