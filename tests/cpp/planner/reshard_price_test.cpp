// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "artifex_devices/base/error.h"
#include "artifex_planner/reshard/price.h"
#include "made_clusters.h"
#include "reference_pairs.h"

namespace artifex_devices::planner {
namespace {

using Bytes = std::array<int64_t, kClusterLinks>;

std::vector<int64_t> first(int64_t count) {
  std::vector<int64_t> ids(static_cast<size_t>(count));
  std::iota(ids.begin(), ids.end(), int64_t{0});
  return ids;
}

TEST(ReshardPrice, MessagesOfATorusWaitForItsBusiestLink) {
  const ClusterRef cluster = made_cluster(NetworkKind::kTorus, {4, 4}, {false, false});
  const MessagesPrice price = price_messages(*cluster, {{0, 3, 500}, {1, 2, 300}, {5, 5, 7}});
  EXPECT_DOUBLE_EQ(price.price.expected.transfer, 8);  // link 1->2 has both
  EXPECT_DOUBLE_EQ(price.price.expected.latency, 3);
  EXPECT_EQ(price.price.expected.limit, "links");
  EXPECT_EQ(price.bytes, (Bytes{7, 0, 800, 0}));
}

TEST(ReshardPrice, PricesSwitchesByChipsAndFullMeshesByPairs) {
  const std::vector<DeviceMessage> messages = {{0, 1, 100}, {0, 2, 200}, {3, 2, 300}};
  EXPECT_DOUBLE_EQ(price_messages(*made_cluster(NetworkKind::kSwitch, {4}, {}), messages).price.expected.transfer, 5);
  EXPECT_DOUBLE_EQ(price_messages(*made_cluster(NetworkKind::kFullMesh, {4}, {}), messages).price.expected.transfer, 3);
}

TEST(ReshardPrice, ConnectsSlicesThroughTheirHosts) {
  const ClusterRef cluster = made_cluster(NetworkKind::kSwitch, {4}, {}, 2);  // hosts of 2 chips
  const MessagesPrice price = price_messages(*cluster, {{0, 4, 100}, {1, 5, 100}, {2, 6, 40}, {0, 1, 300}});
  EXPECT_DOUBLE_EQ(price.price.expected.transfer, 10);  // 200 bytes out of a host with 2 x 10 bytes/s
  EXPECT_EQ(price.price.expected.limit, "network");
  EXPECT_DOUBLE_EQ(price.price.expected.latency, 2);
  EXPECT_EQ(price.bytes, (Bytes{0, 0, 300, 240}));
}

TEST(ReshardPrice, ExpectsTheRatesThatMessagesReach) {
  Efficiency factors = ideal_efficiency();
  const auto set = [&](Factor factor, double value) { factors.factors[static_cast<size_t>(factor)].value = value; };
  set(Factor::kLinkFraction, 0.1);
  set(Factor::kNetwork, 0.5);
  set(Factor::kNetworkHalfBytes, 400);
  const ClusterRef cluster = made_cluster(NetworkKind::kSwitch, {4}, {}, 2);
  const std::vector<DeviceMessage> messages = {{0, 4, 100}, {1, 5, 100}, {0, 1, 300}};
  // Twice as many bytes: 600 inside at a tenth of 100 bytes/s, 400 out of a host at a quarter of 20 bytes/s.
  TransferPrice price = price_messages(*cluster, messages, factors, "plan_reshard", 2).price;
  EXPECT_DOUBLE_EQ(price.expected.transfer, 80);
  EXPECT_EQ(price.expected.limit, "network");
  EXPECT_DOUBLE_EQ(price.bound.transfer, 20);
  set(Factor::kLinkFraction, 0.05);
  price = price_messages(*cluster, messages, factors, "plan_reshard", 2).price;
  EXPECT_DOUBLE_EQ(price.expected.transfer, 120);  // the links are slower than the network now
  EXPECT_EQ(price.expected.limit, "egress");
  EXPECT_EQ(price.bound.limit, "network");
}

TEST(ReshardPrice, IsZeroForCopiesOnAChip) {
  const ClusterRef cluster = made_cluster(NetworkKind::kTorus, {2}, {false}, 1, 2);
  const MessagesPrice price = price_messages(*cluster, {{0, 1, 100}});
  EXPECT_EQ(price.bytes, (Bytes{0, 100, 0, 0}));
  EXPECT_EQ(price.price.expected.seconds(), 0);
  EXPECT_THROW(price_messages(*cluster, {{0, 4, 1}}), InvalidArgument);
}

TEST(ReshardPrice, PricesStepsByTheirGroups) {
  const AbstractMesh mesh({AxisName("x"), AxisName("y")}, {4, 4});
  const ClusterRef cluster = made_cluster(NetworkKind::kTorus, {4, 4}, {false, true});
  const auto price = [&](const std::vector<std::vector<std::string>>& from,
                         const std::vector<std::vector<std::string>>& to) {
    const PartitionSpec source = spec_of(from);
    const PartitionSpec destination = spec_of(to);
    const ReshardSequence sequence = make_reshard_sequence({16, 100}, 1, {mesh, source}, {mesh, destination});
    EXPECT_EQ(sequence.steps.size(), 1);
    return price_step(*cluster, sequence, 0, first(16)).expected;
  };
  // Position 4 i + j lies at coordinates (j, i): y is the line, x the ring.
  const TransferCost line = price({{"y"}, {}}, {{}, {}});
  EXPECT_EQ(line.algorithm, "line, both directions");
  EXPECT_DOUBLE_EQ(line.transfer, 1600.0 * 3 / (4 * 100));
  EXPECT_DOUBLE_EQ(line.latency, 3);
  const TransferCost ring = price({{"x"}, {}}, {{}, {}});
  EXPECT_EQ(ring.algorithm, "ring, both directions");
  EXPECT_DOUBLE_EQ(ring.transfer, 1600.0 * 3 / (2 * 4 * 100));
  const TransferCost exchange = price({{"x"}, {}}, {{}, {"x"}});
  EXPECT_DOUBLE_EQ(exchange.transfer, 1600.0 / (8 * 100));
  EXPECT_EQ(price({{}, {}}, {{"x"}, {}}).seconds(), 0);
  // Each of the chips off the diagonal sends its 100 bytes to its mirror image.
  const TransferCost permute = price({{"x", "y"}, {}}, {{"y", "x"}, {}});
  EXPECT_EQ(permute.algorithm, "all at once");
  EXPECT_GT(permute.transfer, 0);
}

TEST(ReshardPrice, GroupsThatAreNotBoxesAreRoutedAsRings) {
  const AbstractMesh mesh({AxisName("x")}, {3});
  const ClusterRef cluster = made_cluster(NetworkKind::kTorus, {2, 2}, {false, false});
  const PartitionSpec rows = spec_of({{"x"}});
  const PartitionSpec whole = spec_of({{}});
  const ReshardSequence sequence = make_reshard_sequence({300}, 1, {mesh, rows}, {mesh, whole});
  const TransferCost price = price_step(*cluster, sequence, 0, {0, 1, 3}).expected;
  EXPECT_EQ(price.algorithm, "ring in the order of the mesh");
  // 0->1, 1->3 and 3->0 over 2: two rounds of 100 bytes over each link, two hops the longest way.
  EXPECT_DOUBLE_EQ(price.transfer, 2);
  EXPECT_DOUBLE_EQ(price.latency, 4);
  EXPECT_THROW(price_step(*cluster, sequence, 0, {0, 1}), InvalidArgument);
}

TEST(ReshardPrice, CountsNetworkBytesBetweenSlices) {
  const AbstractMesh mesh({AxisName("x"), AxisName("y")}, {2, 4});
  const ClusterRef cluster = made_cluster(NetworkKind::kSwitch, {4}, {}, 2);
  const auto bytes = [&](const std::vector<std::vector<std::string>>& from,
                         const std::vector<std::vector<std::string>>& to) {
    const PartitionSpec source = spec_of(from);
    const PartitionSpec destination = spec_of(to);
    const ReshardSequence sequence = make_reshard_sequence({16, 16}, 1, {mesh, source}, {mesh, destination});
    EXPECT_EQ(sequence.steps.size(), 1);
    return network_bytes(*cluster, sequence, 0, first(8));
  };
  EXPECT_EQ(bytes({{"x"}, {}}, {{}, {}}), 8 * 128);          // four pairs, each a device of both slices
  EXPECT_EQ(bytes({{"y"}, {}}, {{}, {}}), 0);                // inside
  EXPECT_EQ(bytes({{"x", "y"}, {}}, {{}, {}}), 2 * 4 * 32);  // each slice takes the four shards of the other once
  EXPECT_EQ(bytes({{"x", "y"}, {}}, {{}, {"x", "y"}}), 8 * 4 * 4);
  EXPECT_EQ(bytes({{}, {}}, {{"x"}, {}}), 0);
}

TEST(ReshardPrice, BoundsTimeByAllLinks) {
  EXPECT_DOUBLE_EQ(least_seconds(*made_cluster(NetworkKind::kTorus, {4, 2, 1}, {true, false, false}), {0, 600}, {}), 2);
  EXPECT_DOUBLE_EQ(least_seconds(*made_cluster(NetworkKind::kSwitch, {4}, {}), {600}, {}), 6);
  EXPECT_DOUBLE_EQ(least_seconds(*made_cluster(NetworkKind::kFullMesh, {4}, {}), {600}, {}), 2);
  EXPECT_DOUBLE_EQ(least_seconds(*made_cluster(NetworkKind::kSwitch, {4}, {}, 2), {12}, {400, 80}), 10);
  EXPECT_DOUBLE_EQ(least_seconds(*made_cluster(NetworkKind::kSwitch, {4}, {}, 2), {240}, {4, 4}), 2);  // 100 + 2 x 10
  EXPECT_DOUBLE_EQ(least_seconds(*made_cluster(NetworkKind::kSwitch, {4}, {}), {0}, {0}), 0);
}

TEST(ReshardPrice, BoundsTimeByTheLinksOfAChip) {
  const ClusterRef mesh = made_cluster(NetworkKind::kTorus, {4, 4}, {false, false});
  EXPECT_FALSE(chips_have_equal_links(*mesh));
  EXPECT_EQ(links_into(*mesh, 0), 2);   // a corner
  EXPECT_EQ(links_into(*mesh, 1), 3);   // an edge
  EXPECT_EQ(links_into(*mesh, 5), 4);   // inside
  EXPECT_EQ(links_into(*mesh, 15), 2);  // the last corner
  EXPECT_DOUBLE_EQ(least_seconds(*mesh, {600}, {}), 3);
  EXPECT_DOUBLE_EQ(least_seconds(*mesh, {0, 600}, {}), 2);
  EXPECT_DOUBLE_EQ(least_seconds(*mesh, {0, 0, 0, 0, 0, 600}, {}), 1.5);
  EXPECT_DOUBLE_EQ(least_seconds(*mesh, {400, 0, 0, 0, 0, 600}, {}), 2);  // the corner waits longer for less
  const ClusterRef two = made_cluster(NetworkKind::kTorus, {4, 2}, {false, true}, 1, 2);
  EXPECT_EQ(links_into(*two, 0), 2);  // two neighbours have one link, wrapped or not
  EXPECT_EQ(links_into(*two, 1), 3);
  EXPECT_TRUE(chips_have_equal_links(*made_cluster(NetworkKind::kTorus, {4, 2, 1}, {true, false, false})));
  EXPECT_EQ(links_into(*made_cluster(NetworkKind::kFullMesh, {4}, {}), 2), 3);
  EXPECT_EQ(links_into(*made_cluster(NetworkKind::kSwitch, {4}, {}), 2), 1);
}

TEST(ReshardPrice, IncludesTheNetworkBetweenSlices) {
  ClusterParts parts = made_cluster(NetworkKind::kSwitch, {4}, {}, 2)->parts();
  parts.between.bandwidth.reset();
  const ClusterRef cluster = Cluster::make(parts);
  EXPECT_DOUBLE_EQ(least_seconds(*cluster, {600}, {0}), 6);  // one slice of two
  EXPECT_THROW(least_seconds(*cluster, {600}, {0, 0}), Unavailable);
  EXPECT_EQ(least_seconds(*cluster, {0}, {0, 0}), 0);
}

/// Groups that lie alike are priced once; others, as in the same cluster with devices counted backwards, one by one.
TEST(ReshardPrice, GroupsThatArePlacedAlikeCostTheSame) {
  const AbstractMesh mesh({AxisName("x"), AxisName("y"), AxisName("z")}, {4, 2, 4});
  for (const std::string name : {"x", "y", "z"}) {
    for (const ClusterRef& cluster :
         {made_cluster(NetworkKind::kTorus, {4, 4}, {true, false}, 2), made_cluster(NetworkKind::kSwitch, {8}, {}, 4),
          made_cluster(NetworkKind::kTorus, {4, 2}, {true, false}, 2, 2)}) {
      std::vector<int64_t> backwards = first(32);
      std::ranges::reverse(backwards);
      const PartitionSpec source = spec_of({{name}, {}});
      const PartitionSpec destination = spec_of({{}, {name}});
      const ReshardSequence sequence = make_reshard_sequence({64, 64}, 1, {mesh, source}, {mesh, destination});
      ASSERT_EQ(sequence.steps.size(), 1);
      const TransferCost once = price_step(*cluster, sequence, 0, first(32)).expected;
      const TransferCost each = price_step(*cluster, sequence, 0, backwards).expected;
      EXPECT_EQ(once.algorithm, each.algorithm);
      EXPECT_DOUBLE_EQ(once.transfer, each.transfer);
      EXPECT_DOUBLE_EQ(once.latency, each.latency);
      EXPECT_EQ(network_bytes(*cluster, sequence, 0, first(32)), network_bytes(*cluster, sequence, 0, backwards));
    }
  }
}

/// The bound is one: no price of a sequence or of direct messages is below it.
TEST(ReshardPrice, IsNeverBelowTheBound) {
  const std::vector<ReferencePair> pairs = reference_pairs();
  if (pairs.empty()) GTEST_SKIP() << "the table of reshard costs is not beside this checkout";
  const AbstractMesh mesh({AxisName("x"), AxisName("y")}, {4, 2});
  const std::vector<ClusterRef> clusters = {made_cluster(NetworkKind::kTorus, {4, 2}, {true, false}),
                                            made_cluster(NetworkKind::kTorus, {2, 2, 2}, {false, false, false}),
                                            made_cluster(NetworkKind::kTorus, {8}, {false}),
                                            made_cluster(NetworkKind::kTorus, {4, 2}, {false, false}),
                                            made_cluster(NetworkKind::kSwitch, {8}, {}),
                                            made_cluster(NetworkKind::kSwitch, {4}, {}, 2),
                                            made_cluster(NetworkKind::kFullMesh, {4}, {}, 2),
                                            made_cluster(NetworkKind::kTorus, {4}, {true}, 1, 2)};
  for (const ReferencePair& pair : pairs) {
    const ReshardSequence sequence = make_reshard_sequence({16, 16}, 4, {mesh, pair.source}, {mesh, pair.destination});
    const std::vector<int64_t> ingress = pair.numbers("ingress_per_device");
    const std::vector<int64_t> hosts = pair.numbers("interhost_ingress");
    for (const ClusterRef& cluster : clusters) {
      SCOPED_TRACE(pair.line);
      double seconds = 0;
      for (size_t step = 0; step < sequence.steps.size(); ++step) {
        seconds += price_step(*cluster, sequence, step, first(8)).expected.seconds();
      }
      const std::vector<int64_t> slices = cluster->slices() == 2 ? hosts : std::vector<int64_t>{};
      // Two devices on a chip may hold for each other what they lack.
      const std::vector<int64_t> chips = cluster->chip().devices_per_chip == 1 ? ingress : std::vector<int64_t>{};
      EXPECT_GE(seconds * (1 + 1e-12), least_seconds(*cluster, chips, slices));
    }
  }
}

}  // namespace
}  // namespace artifex_devices::planner
