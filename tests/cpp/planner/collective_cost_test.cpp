// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "artifex_devices/base/error.h"
#include "artifex_devices/cluster/link_loads.h"
#include "artifex_planner/cost/collectives.h"

namespace artifex_devices::planner {
namespace {

constexpr double kHop = 1e-6;

LocalGroup torus(std::vector<GroupAxis> axes, double link = 1, CollectiveLatency latency = {}) {
  return TorusGroup{std::move(axes), link, latency};
}

TransferCost cheapest(CollectiveOp op, double bytes, const LocalGroup& group) {
  return collective_costs(op, bytes, group).front();
}

TransferCost named(const std::vector<TransferCost>& costs, std::string_view algorithm) {
  for (const TransferCost& cost : costs) {
    if (cost.algorithm == algorithm) return cost;
  }
  ADD_FAILURE() << "no " << algorithm;
  return {};
}

TEST(CollectiveCost, MatchesThePublishedExampleForV5e) {
  // https://jax-ml.github.io/scaling-book: an axis of 4 of a v5e without wrap, 34 MB gathered (8.4 MB per chip).
  const LocalGroup line = torus({{4}}, 4.5e10, {0, kHop});
  const TransferCost cost = cheapest(CollectiveOp::kAllGather, 4 * 8.4e6, line);
  EXPECT_EQ(cost.algorithm, "line, both directions");
  EXPECT_DOUBLE_EQ(cost.transfer, 560e-6);
  EXPECT_DOUBLE_EQ(cost.latency, 3e-6);
  EXPECT_FALSE(cost.is_bound);
}

TEST(CollectiveCost, HalvesTheTimeOfARingThatUsesBothDirections) {
  const std::vector<TransferCost> costs =
      collective_costs(CollectiveOp::kAllGather, 800, torus({{8, true}}, 10, {0, 1}));
  ASSERT_EQ(costs.size(), 2);
  EXPECT_EQ(costs[0].algorithm, "ring, both directions");
  EXPECT_DOUBLE_EQ(costs[0].transfer, 35);  // 800 * 7 / (2 * 8 * 10)
  EXPECT_EQ(costs[0].latency, 4);
  EXPECT_EQ(costs[1].algorithm, "ring, one direction");
  EXPECT_DOUBLE_EQ(costs[1].transfer, 70);
  EXPECT_EQ(costs[1].latency, 7);
}

TEST(CollectiveCost, PairsAcrossARingUseBothDirections) {
  // Chips 0 and 2, 1 and 3 of a ring of 4: each link carries a half of each of two messages of V / 2.
  LinkLoads loads({4}, {true});
  for (const auto& [from, to] : {std::pair{0, 2}, {2, 0}, {1, 3}, {3, 1}}) loads.add(from, to, 400);
  EXPECT_DOUBLE_EQ(cheapest(CollectiveOp::kAllGather, 800, torus({{2, true, 2}})).transfer, loads.most_bytes());
  // Two neighbours have one link, where the ring has two chips.
  EXPECT_DOUBLE_EQ(cheapest(CollectiveOp::kAllGather, 800, torus({{2, true, 1}})).transfer, 400);
}

TEST(CollectiveCost, PricesAnAllReduceAsTwoAllGathersWithOneStart) {
  const LocalGroup ring = torus({{8, true}}, 10, {5, 1});
  const TransferCost gather = cheapest(CollectiveOp::kAllGather, 800, ring);
  const TransferCost scatter = cheapest(CollectiveOp::kReduceScatter, 800, ring);
  const TransferCost reduce = cheapest(CollectiveOp::kAllReduce, 800, ring);
  EXPECT_EQ(scatter.seconds(), gather.seconds());
  EXPECT_EQ(gather.latency, 9);
  EXPECT_EQ(reduce.latency, 13);
  EXPECT_DOUBLE_EQ(reduce.transfer, 2 * gather.transfer);
}

TEST(CollectiveCost, PricesAllToAllOnRingsAndLines) {
  // V / (8 W), V (N^2-1) / (8 N^2 W), V / (4 W), V (N^2-1) / (4 N^2 W), V (N-1) / (2 N W)
  EXPECT_DOUBLE_EQ(cheapest(CollectiveOp::kAllToAll, 800, torus({{8, true}})).transfer, 100);
  EXPECT_DOUBLE_EQ(cheapest(CollectiveOp::kAllToAll, 25, torus({{5, true}})).transfer, 3);
  EXPECT_DOUBLE_EQ(cheapest(CollectiveOp::kAllToAll, 800, torus({{8, false}})).transfer, 200);
  EXPECT_DOUBLE_EQ(cheapest(CollectiveOp::kAllToAll, 25, torus({{5, false}})).transfer, 6);
  EXPECT_DOUBLE_EQ(
      named(collective_costs(CollectiveOp::kAllToAll, 800, torus({{8, true}})), "ring, one direction").transfer, 350);
}

TEST(CollectiveCost, UsesAllAxesOfATorusAtOnce) {
  const LocalGroup cube = torus({{4, true}, {4, true}, {8, true}}, 2, {0, 1});
  const TransferCost gather = cheapest(CollectiveOp::kAllGather, 1280, cube);
  EXPECT_EQ(gather.algorithm, "torus, all axes at once");
  EXPECT_DOUBLE_EQ(gather.transfer, 1280.0 * 127 / (2 * 3 * 128 * 2));
  EXPECT_EQ(gather.latency, 8);
  EXPECT_TRUE(gather.is_bound);
  const TransferCost mesh = cheapest(CollectiveOp::kAllGather, 160, torus({{4}, {4}}));
  EXPECT_EQ(mesh.algorithm, "mesh, all axes at once");
  EXPECT_DOUBLE_EQ(mesh.transfer, 160.0 * 15 / (2 * 16));
  EXPECT_DOUBLE_EQ(cheapest(CollectiveOp::kAllToAll, 128, cube).transfer, 128.0 * 8 / (8 * 128 * 2));
}

TEST(CollectiveCost, IgnoresAxesOfOneAndTreatsRingsOfTwoAsLines) {
  EXPECT_EQ(cheapest(CollectiveOp::kAllGather, 80, torus({{1, true}, {4}, {1}})).algorithm, "line, both directions");
  const TransferCost two = cheapest(CollectiveOp::kAllGather, 80, torus({{2, true}}));
  EXPECT_EQ(two.algorithm, "line, both directions");
  EXPECT_DOUBLE_EQ(two.transfer, 40);
}

TEST(CollectiveCost, SharesLinksBetweenInterleavedGroups) {
  // Every second chip of a ring of 8: the other four are a group too.
  const TransferCost whole = cheapest(CollectiveOp::kAllGather, 80, torus({{4, true, 1}}, 1, {0, 1}));
  const TransferCost half = cheapest(CollectiveOp::kAllGather, 80, torus({{4, true, 2}}, 1, {0, 1}));
  EXPECT_DOUBLE_EQ(half.transfer, 2 * whole.transfer);
  EXPECT_EQ(half.latency, 2 * whole.latency);
}

TEST(CollectiveCost, UsesTheFewestRoundsOnASwitch) {
  const LocalGroup nvlink = SwitchGroup{8, 10, {2, 1}};
  const std::vector<TransferCost> gather = collective_costs(CollectiveOp::kAllGather, 800, nvlink);
  EXPECT_EQ(gather[0].algorithm, "recursive doubling");
  EXPECT_EQ(gather[0].latency, 5);
  EXPECT_DOUBLE_EQ(gather[0].transfer, 70);
  EXPECT_EQ(named(gather, "ring").latency, 9);
  EXPECT_DOUBLE_EQ(cheapest(CollectiveOp::kAllToAll, 800, nvlink).transfer, 800.0 * 7 / (64 * 10));
  EXPECT_DOUBLE_EQ(named(collective_costs(CollectiveOp::kAllToAll, 800, nvlink), "Bruck").transfer, 15);
}

TEST(CollectiveCost, ReducesShortMessagesByRecursiveDoubling) {
  const LocalGroup nvlink = SwitchGroup{8, 10, {0, 1}};
  EXPECT_EQ(cheapest(CollectiveOp::kAllReduce, 1, nvlink).algorithm, "recursive doubling");  // 3.3 s, else 6.175 s
  EXPECT_DOUBLE_EQ(cheapest(CollectiveOp::kAllReduce, 1, nvlink).seconds(), 3.3);
  EXPECT_EQ(cheapest(CollectiveOp::kAllReduce, 1000, nvlink).algorithm, "recursive halving and doubling");
  EXPECT_DOUBLE_EQ(cheapest(CollectiveOp::kAllReduce, 1000, nvlink).seconds(), 6 + 175);
  EXPECT_EQ(cheapest(CollectiveOp::kBroadcast, 1, nvlink).algorithm, "binomial tree");
  EXPECT_DOUBLE_EQ(cheapest(CollectiveOp::kBroadcast, 1, nvlink).seconds(), 3.3);
  EXPECT_EQ(cheapest(CollectiveOp::kBroadcast, 1000, nvlink).algorithm, "scatter and all-gather");
  EXPECT_DOUBLE_EQ(cheapest(CollectiveOp::kBroadcast, 1000, nvlink).seconds(), 10 + 175);
}

TEST(CollectiveCost, UsesALinkForEachPairOfAFullMesh) {
  const LocalGroup xgmi = FullMeshGroup{8, 2, {0, 1}};
  EXPECT_DOUBLE_EQ(cheapest(CollectiveOp::kAllGather, 160, xgmi).seconds(), 1 + 10);
  EXPECT_DOUBLE_EQ(cheapest(CollectiveOp::kAllReduce, 160, xgmi).seconds(), 2 + 20);
  EXPECT_DOUBLE_EQ(cheapest(CollectiveOp::kAllToAll, 128, xgmi).seconds(), 1 + 1);
  EXPECT_DOUBLE_EQ(cheapest(CollectiveOp::kBroadcast, 160, xgmi).seconds(), 2 + 20);
  EXPECT_DOUBLE_EQ(named(collective_costs(CollectiveOp::kBroadcast, 160, xgmi), "direct").seconds(), 1 + 80);
}

TEST(CollectiveCost, PricesNodesOfH100) {
  // 4 nodes of 8: E = 450e9, network 50e9 a GPU.
  const NodeGroup group{SwitchGroup{8, 450e9, {}}, 4, 50e9, {}};
  const double v = 1e9;
  const auto best = [&](CollectiveOp op) { return collective_costs(op, v, group).front(); };
  EXPECT_EQ(devices_of(group), 32);
  const double inside = v * 7 / (8 * 450e9);
  const double across = v * 3 / (4 * 400e9);
  ASSERT_GT(inside, across);
  for (const CollectiveOp op : {CollectiveOp::kAllGather, CollectiveOp::kReduceScatter, CollectiveOp::kAllReduce}) {
    const double times = op == CollectiveOp::kAllReduce ? 2 : 1;
    EXPECT_DOUBLE_EQ(best(op).transfer, times * inside) << to_string(op);
    EXPECT_EQ(best(op).algorithm, "nodes and devices at once");
    EXPECT_EQ(best(op).limit, "egress");
    EXPECT_DOUBLE_EQ(collective_costs(op, v, group).back().transfer, times * (inside + across)) << to_string(op);
  }
  EXPECT_DOUBLE_EQ(best(CollectiveOp::kAllToAll).transfer, v * 3 / (16 * 400e9));
  EXPECT_EQ(best(CollectiveOp::kAllToAll).limit, "network");
}

TEST(CollectiveCost, DeliversTheMissingBytesInTheStagesOfAnAllGather) {
  // 3 nodes of 4 gather 1,200 bytes. Across, each device gets the parts of its 2 peers, 100 bytes each, at 2 bytes/s;
  // inside, what its 3 neighbours then have, 300 bytes each, at 10.
  const NodeGroup group{SwitchGroup{4, 10, {}}, 3, 2, {}};
  const std::vector<TransferCost> costs = collective_costs(CollectiveOp::kAllGather, 1200, group);
  EXPECT_DOUBLE_EQ(named(costs, "nodes, then devices").transfer, 2 * 100 / 2.0 + 3 * 300 / 10.0);
  EXPECT_DOUBLE_EQ(named(costs, "nodes and devices at once").transfer, 2 * 100 / 2.0);  // the network
  const NodeGroup narrow{SwitchGroup{4, 5, {}}, 3, 2, {}};
  EXPECT_DOUBLE_EQ(collective_costs(CollectiveOp::kAllGather, 1200, narrow).front().transfer, 3 * 300 / 5.0);
}

TEST(CollectiveCost, PricesAnAllReduceOverNodesAtMostAsItsTwoHalves) {
  const CollectiveLatency step{3e-6, 1e-6};
  const std::vector<LocalGroup> locals = {SwitchGroup{8, 450e9, step}, FullMeshGroup{8, 64e9, step},
                                          torus({{4, true}, {4, true}}, 45e9, step), torus({{8}}, 45e9, step),
                                          SwitchGroup{1, 1, {}}};
  int compared = 0;
  for (const LocalGroup& local : locals) {
    for (const int64_t nodes : {2, 4, 16, 1000}) {
      for (const double bytes : {1.0, 1e6, 8.0 * (1 << 30), 1e12}) {
        const NodeGroup group{local, nodes, 50e9, {5e-6, 9.6e-6}};
        const auto seconds = [&](CollectiveOp op) { return collective_costs(op, bytes, group).front().seconds(); };
        EXPECT_LE(seconds(CollectiveOp::kAllReduce),
                  (seconds(CollectiveOp::kReduceScatter) + seconds(CollectiveOp::kAllGather)) * (1 + 1e-12));
        ++compared;
      }
    }
  }
  EXPECT_EQ(compared, 80);
}

TEST(CollectiveCost, PredictsThePublishedTimeOfFourDgxH100) {
  // Published: 32.2 ms for 8 GiB.
  const double v = 8.0 * (1 << 30);
  const NodeGroup group{SwitchGroup{8, 450e9, {0, 3.4e-6}}, 4, 50e9, {0, 9.6e-6}};
  const TransferCost cost = collective_costs(CollectiveOp::kAllReduce, v, group).front();
  EXPECT_DOUBLE_EQ(cost.transfer, 2 * v * 7 / (8 * 450e9));         // 33.4 ms inside; 32.2 ms across
  EXPECT_DOUBLE_EQ(cost.latency, 2 * 3 * 3.4e-6 + 2 * 2 * 9.6e-6);  // log2 of 8 and of 4, each there and back
  EXPECT_NEAR(cost.seconds() / 32.2e-3, 1, 0.05);
}

TEST(CollectiveCost, TreatsOneNodeAsItsLocalGroup) {
  const LocalGroup local = SwitchGroup{8, 10, {}};
  const std::vector<TransferCost> costs = collective_costs(CollectiveOp::kAllGather, 800, NodeGroup{local, 1, 0, {}});
  EXPECT_EQ(costs[0].seconds(), collective_costs(CollectiveOp::kAllGather, 800, local)[0].seconds());
}

TEST(CollectiveCost, CostsNothingOnOneDevice) {
  for (const LocalGroup& group : {torus({{1, true}}), LocalGroup(SwitchGroup{1, 1, {}}), torus({})}) {
    const std::vector<TransferCost> costs = collective_costs(CollectiveOp::kAllReduce, 800, group);
    ASSERT_EQ(costs.size(), 1);
    EXPECT_EQ(costs[0].algorithm, "none");
    EXPECT_EQ(costs[0].seconds(), 0);
  }
  EXPECT_EQ(received_bytes(CollectiveOp::kAllReduce, 800, 1), 0);
}

TEST(CollectiveCost, CountsTheBytesThatEachDeviceReceives) {
  EXPECT_EQ(received_bytes(CollectiveOp::kAllGather, 800, 8), 700);
  EXPECT_EQ(received_bytes(CollectiveOp::kReduceScatter, 800, 8), 700);
  EXPECT_EQ(received_bytes(CollectiveOp::kAllReduce, 800, 8), 1400);
  EXPECT_EQ(received_bytes(CollectiveOp::kAllToAll, 800, 8), 87.5);
  EXPECT_EQ(received_bytes(CollectiveOp::kBroadcast, 800, 8), 800);
}

TEST(CollectiveCost, NamesAreParsedAndFormatted) {
  for (const char* name : {"all_gather", "reduce_scatter", "all_reduce", "all_to_all", "broadcast"}) {
    EXPECT_EQ(to_string(kind_from_name<CollectiveOp>(name).value()), name);
  }
  EXPECT_FALSE(kind_from_name<CollectiveOp>("psum"));
}

TEST(CollectiveCost, RefusesInvalidNetworks) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto cost = [](double bytes, const LocalGroup& group) {
    return collective_costs(CollectiveOp::kAllGather, bytes, group);
  };
  EXPECT_THROW(cost(-1, torus({{4}})), InvalidArgument);
  EXPECT_THROW(cost(nan, torus({{4}})), InvalidArgument);
  EXPECT_THROW(cost(1, torus({{0}})), InvalidArgument);
  EXPECT_THROW(cost(1, torus({{4, false, 0}})), InvalidArgument);
  EXPECT_THROW(cost(1, torus({{4}}, 0)), InvalidArgument);
  EXPECT_THROW(cost(1, torus({{4}}, 1, {0, nan})), InvalidArgument);
  EXPECT_THROW(cost(1, torus({{1 << 20}, {1 << 20}})), InvalidArgument);
  EXPECT_THROW(cost(1, LocalGroup(SwitchGroup{4, nan, {}})), InvalidArgument);
  EXPECT_THROW(cost(1, LocalGroup(FullMeshGroup{-1, 1, {}})), InvalidArgument);
  EXPECT_THROW(collective_costs(CollectiveOp::kAllGather, 1, NodeGroup{SwitchGroup{4, 1, {}}, 2, 0, {}}),
               InvalidArgument);
}

/// The formula's all-to-all against every message put on its links.
TEST(CollectiveCost, PricesAllToAllAsTheSumOfItsMessages) {
  struct Torus {
    std::vector<int64_t> dims;
    std::vector<bool> wraps;
  };
  const std::vector<Torus> tori = {{{4}, {false}},
                                   {{4}, {true}},
                                   {{5}, {true}},
                                   {{5}, {false}},
                                   {{8}, {true}},
                                   {{16}, {true}},
                                   {{2, 2}, {false, false}},
                                   {{4, 4}, {true, true}},
                                   {{4, 4}, {false, false}},
                                   {{3, 4}, {true, false}},
                                   {{4, 8}, {false, true}},
                                   {{16, 8}, {true, false}},
                                   {{2, 2, 4}, {false, false, true}},
                                   {{4, 4, 4}, {true, true, true}},
                                   {{4, 4, 8}, {true, true, true}}};
  for (const Torus& torus : tori) {
    LinkLoads loads(torus.dims, torus.wraps);
    const auto n = static_cast<double>(loads.chips());
    for (int64_t from = 0; from < loads.chips(); ++from) {
      for (int64_t to = 0; to < loads.chips(); ++to) loads.add(from, to, 1);
    }
    TorusGroup group{.axes = {}, .link = 1, .latency = {0, 1}};
    for (size_t axis = 0; axis < torus.dims.size(); ++axis) {
      group.axes.push_back({torus.dims[axis], torus.wraps[axis], 1});
    }
    const TransferCost cost = collective_costs(CollectiveOp::kAllToAll, n * n, LocalGroup(group)).front();
    EXPECT_DOUBLE_EQ(cost.transfer, loads.most_bytes()) << "of " << n;
    EXPECT_EQ(cost.latency, static_cast<double>(loads.longest_path())) << "of " << n;
  }
}

TEST(CollectiveCost, FlowAtTheRatesThatMessagesReach) {
  Efficiency factors = ideal_efficiency();
  const auto set = [&](Factor factor, double value) { factors.factors[static_cast<size_t>(factor)].value = value; };
  set(Factor::kLinkFraction, 0.8);
  set(Factor::kLinksHalfBytes, 800);
  set(Factor::kNetwork, 0.5);
  const LocalGroup inside = SwitchGroup{8, 10, {0, 1}};
  const TransferCost bound = collective_costs(CollectiveOp::kAllGather, 800, inside).front();
  const TransferCost half = collective_costs(CollectiveOp::kAllGather, 800, inside, factors).front();
  EXPECT_EQ(half.latency, bound.latency);
  EXPECT_DOUBLE_EQ(half.transfer, bound.transfer / (0.8 / 2));
  // The network limits the larger group.
  const NodeGroup nodes{inside, 2, 0.1, {0, 1}};
  EXPECT_DOUBLE_EQ(collective_costs(CollectiveOp::kAllGather, 800, nodes, factors).front().transfer,
                   collective_costs(CollectiveOp::kAllGather, 800, nodes).front().transfer / 0.5);
  // A recursive doubling that the factors make slower than a ring comes after it.
  const std::vector<TransferCost> costs = collective_costs(CollectiveOp::kAllReduce, 1e6, inside, factors);
  EXPECT_TRUE(std::ranges::is_sorted(costs, {}, &TransferCost::seconds));
}

TEST(CollectiveCost, SwitchesThatAddMoveFewerBytes) {
  Efficiency factors = ideal_efficiency();
  factors.factors[static_cast<size_t>(Factor::kNvls)].value = 0.5;
  const LocalGroup adds = SwitchGroup{8, 100, {0, 0}, true};
  const TransferCost bound = collective_costs(CollectiveOp::kAllReduce, 1e6, adds).front();
  EXPECT_EQ(bound.algorithm, kSumsInSwitch);
  EXPECT_DOUBLE_EQ(bound.transfer, 1e6 * 9 / 8 / 100);  // a ring moves 14 / 8
  // At half of the rate a ring is faster.
  EXPECT_NE(collective_costs(CollectiveOp::kAllReduce, 1e6, adds, factors).front().algorithm, kSumsInSwitch);
  const std::vector<TransferCost> pair = collective_costs(CollectiveOp::kAllReduce, 1e6, SwitchGroup{2, 100, {}, true});
  EXPECT_TRUE(std::ranges::none_of(pair, [](const TransferCost& each) { return each.algorithm == kSumsInSwitch; }));
}

}  // namespace
}  // namespace artifex_devices::planner
