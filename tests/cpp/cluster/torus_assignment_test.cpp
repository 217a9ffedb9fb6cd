// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/cluster/torus_assignment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "artifex_devices/cluster/torus_rates.h"
#include "artifex_devices/cluster/torus_vectors.h"

namespace artifex_devices {
namespace {

using Sizes = std::vector<int64_t>;
using Factors = std::vector<Sizes>;

TEST(TorusAssignment, TakesWholeAxesFromTheLastAxis) {
  EXPECT_EQ(assign_whole_axes({2, 2, 4}, {4, 4}).found->factors, (Factors{{1, 2}, {1, 2}, {4, 1}}));
  EXPECT_EQ(assign_whole_axes({4, 4, 4}, {16, 4}).found->factors, (Factors{{1, 4}, {4, 1}, {4, 1}}));
}

TEST(TorusAssignment, ReportsWhereTheGreedyRuleStopped) {
  const AssignmentAttempt attempt = assign_whole_axes({2, 2, 4}, {2, 2, 4});
  EXPECT_FALSE(attempt.found);
  EXPECT_EQ(attempt.stopped.logical_axis, 1);
  EXPECT_EQ(attempt.stopped.remaining, (Sizes{0, 0, 4}));
}

TEST(TorusAssignment, PrefersWholeAxesToSplitOnes) {
  EXPECT_EQ(assign_split_axes({4, 4, 1}, {2, 2, 4}).found->factors, (Factors{{1, 1, 4}, {2, 2, 1}, {1, 1, 1}}));
  EXPECT_EQ(assign_split_axes({8, 8, 1}, {2, 2, 16}).found->factors, (Factors{{1, 1, 8}, {2, 2, 2}, {1, 1, 1}}));
  EXPECT_EQ(assign_split_axes({4, 4, 8}, {2, 64}).found->factors, (Factors{{1, 4}, {2, 2}, {1, 8}}));
}

TEST(TorusAssignment, OrdersAsReshapeAndTranspose) {
  EXPECT_EQ(order_of({{{1, 1, 4}, {2, 2, 1}}}), (Sizes{0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15}));
  EXPECT_EQ(order_of({{{2, 3}}}), (Sizes{0, 1, 2, 3, 4, 5}));
}

TEST(TorusRates, DoubleWithWrapsAndDivideByStrides) {
  const Torus torus{.dims = {4, 8}, .wraps = {true, false}, .link_bandwidth = 10, .hop_latency = 1};
  const std::vector<AxisRate> rates = rates_of(torus, TorusAssignment{{{2, 2}, {1, 8}}});
  ASSERT_EQ(rates.size(), 2U);
  // Two chips of a ring of 4, two apart: both ways round, shared by two groups.
  EXPECT_EQ(rates[0].parts, (std::vector<AxisPart>{{0, 2, 2, true, 10}}));
  EXPECT_EQ(rates[0].hops, 2);
  EXPECT_EQ(rates[1].parts, (std::vector<AxisPart>{{0, 2, 1, false, 10}, {1, 8, 1, false, 10}}));
  EXPECT_EQ(rates[1].bandwidth, 20);
  EXPECT_EQ(rates[1].hops, 8);
  // 100 * 1/2 / 10 + 2, 100 * 15/16 / 20 + 8
  EXPECT_DOUBLE_EQ(seconds_of(torus, rates, {100, 100}), 7 + 12.6875);
}

TEST(TorusRates, AreIndependentOfTheOrderOfAnAssignment) {
  const Torus torus{.dims = {4, 4, 8}, .wraps = {true, true, true}, .link_bandwidth = 3};
  for_each_division(16, torus.dims, [&](const Sizes& parts) {
    TorusAssignment assignment;
    for (size_t p = 0; p < 3; ++p) assignment.factors.push_back({1, parts[p], torus.dims[p] / parts[p]});
    const Sizes shape = {1, 16, 8};
    const std::vector<AxisRate> exact = rates_of(torus, assignment);
    const std::vector<AxisRate> looked_at = rates_of(torus, shape, order_of(assignment));
    for (size_t l = 0; l < 3; ++l) {
      EXPECT_EQ(looked_at[l].parts, exact[l].parts);
      EXPECT_EQ(looked_at[l].bandwidth, exact[l].bandwidth);
      EXPECT_EQ(looked_at[l].hops, exact[l].hops);
    }
  });
}

TEST(TorusRates, TreatOtherGroupsAsRings) {
  // Places 0, 1 and 3 of a line of 4 are not a grid: from 1 to 3 is two hops, and the last message returns from 3 to 0.
  const Torus line{.dims = {4}, .wraps = {false}, .link_bandwidth = 6};
  const std::vector<AxisRate> rates = rates_of(line, {3}, {0, 1, 3});
  EXPECT_TRUE(rates[0].parts.empty());
  EXPECT_EQ(rates[0].link_load, 2);
  EXPECT_EQ(rates[0].bandwidth, 6);
}

TEST(TorusRates, UseBothDirectionsOfEqualLength) {
  // Of places 0, 1 and 3 of a ring of 6 the last step is three hops: half of it each way. The link 0->1 then has a
  // neighbour's transfer and half of that from 0 to 3.
  const Torus ring{.dims = {6}, .wraps = {true}, .link_bandwidth = 6};
  const std::vector<AxisRate> rates = rates_of(ring, {3}, {0, 1, 3});
  EXPECT_EQ(rates[0].link_load, 1.5);
  EXPECT_EQ(rates[0].bandwidth, 8);
  EXPECT_EQ(rates[0].hops, 3);
}

TEST(TorusSearch, FindsWhatTheGreedyRuleMisses) {
  const Torus torus{.dims = {2, 2, 4}, .wraps = {false, false, false}};
  EXPECT_EQ(assign_exactly(torus, {2, 2, 4}, {1, 1, 1}, false)->factors, (Factors{{1, 2, 1}, {2, 1, 1}, {1, 1, 4}}));
  EXPECT_FALSE(assign_exactly(torus, {8, 2, 1}, {1, 1, 1}, false)->factors.empty());
  EXPECT_FALSE(assign_exactly(Torus{.dims = {4, 4}, .wraps = {false, false}}, {2, 8}, {1, 1}, false));
}

TEST(TorusSearch, GivesTheBetterLinksToTheTraffic) {
  const Torus torus{.dims = {2, 2, 4}, .wraps = {false, false, false}};
  EXPECT_EQ(assign_exactly(torus, {4, 4}, {1, 10}, false)->factors, (Factors{{1, 2}, {1, 2}, {4, 1}}));  // JAX's
  EXPECT_EQ(assign_exactly(torus, {4, 4}, {10, 1}, false)->factors, (Factors{{2, 1}, {2, 1}, {1, 4}}));
}

// Against every assignment, one by one.
TEST(TorusSearch, FindsTheOptimum) {
  const Torus torus{.dims = {4, 6, 2}, .wraps = {true, false, false}, .link_bandwidth = 2, .hop_latency = 0.01};
  const Sizes mesh = {4, 3, 4};
  const std::vector<double> traffic = {5, 1, 2};
  double best = 1e300;
  int count = 0;
  for_each_division(mesh[2], torus.dims, [&](const Sizes& last) {
    Sizes free = torus.dims;
    for (size_t p = 0; p < 3; ++p) free[p] /= last[p];
    for_each_division(mesh[1], free, [&](const Sizes& middle) {
      TorusAssignment each;
      for (size_t p = 0; p < 3; ++p) each.factors.push_back({free[p] / middle[p], middle[p], last[p]});
      best = std::min(best, seconds_of(torus, rates_of(torus, each), traffic));
      ++count;
    });
  });
  EXPECT_EQ(count, 4);
  const auto found = assign_exactly(torus, mesh, traffic, true);
  ASSERT_TRUE(found);
  EXPECT_DOUBLE_EQ(seconds_of(torus, rates_of(torus, *found), traffic), best);
}

}  // namespace
}  // namespace artifex_devices
