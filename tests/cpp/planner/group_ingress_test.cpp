// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/reshard/group_ingress.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <set>
#include <string>

#include "artifex_devices/base/error.h"
#include "artifex_devices/partition/reshard_plan.h"
#include "reference_pairs.h"

namespace artifex_devices::planner {
namespace {

ShardDomains domains(const TileGrid& grid, const Dims& shape, Uneven uneven = Uneven::kError) {
  return ShardDomains(grid, shape, uneven, {.operation = "test"});
}

TEST(GroupIngress, CountsEachElementOnce) {
  const AbstractMesh mesh({AxisName("x")}, {2});
  const TileGrid halves(mesh, PartitionSpec({SpecEntry(AxisName("x"))}));
  const TileGrid whole(mesh, PartitionSpec());
  const Dims shape{8};
  EXPECT_EQ(group_ingress_bytes(domains(halves, shape), {0, 1}, domains(whole, shape), {0, 1}, 2, 4),
            (std::vector<int64_t>{16, 16}));
  EXPECT_EQ(group_ingress_bytes(domains(halves, shape), {0, 0}, domains(whole, shape), {0, 0}, 1, 4),
            (std::vector<int64_t>{0}));
  EXPECT_EQ(group_ingress_bytes(domains(halves, shape), {0, 0}, domains(whole, shape), {1, 1}, 2, 4),
            (std::vector<int64_t>{0, 32}));
}

TEST(GroupIngress, RefusesInvalidGroups) {
  const AbstractMesh mesh({AxisName("x")}, {2});
  const TileGrid whole(mesh, PartitionSpec());
  const auto call = [&](const Dims& shape, const std::vector<int64_t>& groups) {
    return group_ingress_bytes(domains(whole, {8}), {0, 0}, domains(whole, shape), groups, 2, 4);
  };
  EXPECT_THROW(call({9}, {0, 0}), InvalidArgument);
  EXPECT_THROW(call({8}, {0}), InvalidArgument);
  EXPECT_THROW(call({8}, {0, 2}), InvalidArgument);
}

TEST(GroupIngress, MatchesTheTableOfHosts) {
  const std::vector<ReferencePair> pairs = reference_pairs();
  if (pairs.empty()) GTEST_SKIP() << "the table of reshard costs is not beside this checkout";
  const AbstractMesh mesh({AxisName("x"), AxisName("y")}, {4, 2});
  const Dims shape{16, 16};
  for (const ReferencePair& pair : pairs) {
    SCOPED_TRACE(pair.line);
    const TileGrid from(mesh, pair.source);
    const TileGrid to(mesh, pair.destination);
    const std::vector<int64_t> host_of = {0, 0, 0, 0, 1, 1, 1, 1};
    EXPECT_EQ(group_ingress_bytes(domains(from, shape), host_of, domains(to, shape), host_of, 2, 4),
              pair.numbers("interhost_ingress"));
  }
}

/// Every element looked at by itself.
TEST(GroupIngress, AgreesWithCountingElements) {
  std::mt19937 random(3);
  const auto below = [&](int64_t n) { return std::uniform_int_distribution<int64_t>(0, n - 1)(random); };
  const AbstractMesh mesh({AxisName("a"), AxisName("b")}, {3, 2});
  for (int round = 0; round < 100; ++round) {
    const auto grid = [&] {
      std::vector<SpecEntry> entries(2);
      for (const char* name : {"a", "b"}) {
        const int64_t d = below(3);
        if (d < 2) entries[static_cast<size_t>(d)].axes.emplace_back(name);
      }
      for (SpecEntry& entry : entries) entry = SpecEntry(entry.axes);
      return TileGrid(mesh, PartitionSpec(entries));
    };
    const TileGrid from = grid();
    const TileGrid to = grid();
    const Dims shape{below(8), below(8)};
    const ShardDomains source = domains(from, shape, Uneven::kLastShort);
    const ShardDomains destination = domains(to, shape, Uneven::kLastShort);
    std::vector<int64_t> groups(6);
    for (int64_t& group : groups) group = below(3);
    const auto cells = [&](const ShardDomains& where, int64_t group) {
      std::set<std::pair<int64_t, int64_t>> found;
      for (int64_t p = 0; p < 6; ++p) {
        if (groups[static_cast<size_t>(p)] != group) continue;
        const IndexDomain box = where.domain(Position(p));
        for (int64_t i = 0; i < box.shape[0]; ++i) {
          for (int64_t j = 0; j < box.shape[1]; ++j) found.emplace(box.origin[0] + i, box.origin[1] + j);
        }
      }
      return found;
    };
    std::vector<int64_t> expected;
    for (int64_t group = 0; group < 3; ++group) {
      const auto had = cells(source, group);
      int64_t missing = 0;
      for (const auto& cell : cells(destination, group)) missing += !had.contains(cell);
      expected.push_back(missing * 2);
    }
    ASSERT_EQ(group_ingress_bytes(source, groups, destination, groups, 3, 2), expected) << to_string(shape);
  }
}

/// Groups by ranges of positions against groups by number, over grids that cut by each way that three axes can.
TEST(GroupIngress, TreatsRangesOfPositionsAsGroups) {
  std::mt19937 random(5);
  const auto below = [&](int64_t n) { return std::uniform_int_distribution<int64_t>(0, n - 1)(random); };
  const std::vector<std::string> names = {"a", "b", "c"};
  int compared = 0;
  for (int round = 0; round < 300; ++round) {
    const AbstractMesh mesh({AxisName("a"), AxisName("b"), AxisName("c")}, {2 + below(2), 4, 2 + 2 * below(2)});
    const int64_t positions = mesh.size();
    const auto grid = [&] {
      std::vector<SpecEntry> entries(2);
      std::vector<std::string> order = names;
      std::ranges::shuffle(order, random);
      for (const std::string& name : order) {
        const int64_t d = below(3);
        if (d < 2) entries[static_cast<size_t>(d)].axes.emplace_back(name);
      }
      for (SpecEntry& entry : entries) entry = SpecEntry(entry.axes);
      return TileGrid(mesh, PartitionSpec(entries));
    };
    const TileGrid from = grid();
    const TileGrid to = grid();
    const Dims shape{below(50), 24};
    const ShardDomains source = domains(from, shape, Uneven::kLastShort);
    const ShardDomains destination = domains(to, shape, Uneven::kLastShort);
    std::vector<PositionRange> inside{{int64_t{1} << below(3), 1}};
    if (below(2) == 1) inside.push_back({2, inside[0].size << below(2)});
    const std::vector<int64_t> firsts = first_positions(inside, positions);
    const auto found = group_ingress_bytes(source, destination, inside, 4);
    if (!found) continue;
    ++compared;
    std::vector<int64_t> group_of(static_cast<size_t>(positions), -1);
    for (size_t g = 0; g < firsts.size(); ++g) {
      for (int64_t i = 0; i < inside[0].size; ++i) {
        for (int64_t j = 0; j < (inside.size() > 1 ? 2 : 1); ++j) {
          group_of[static_cast<size_t>(firsts[g] + i + j * (inside.size() > 1 ? inside[1].stride : 0))] =
              static_cast<int64_t>(g);
        }
      }
    }
    ASSERT_EQ(*found,
              group_ingress_bytes(source, group_of, destination, group_of, static_cast<int64_t>(firsts.size()), 4))
        << to_string(shape);
  }
  EXPECT_GT(compared, 150);
}

TEST(GroupIngress, RangesThatAreNotDigitsReturnNothing) {
  const AbstractMesh mesh({AxisName("a"), AxisName("b")}, {2, 3});
  const TileGrid rows(mesh, PartitionSpec({SpecEntry(AxisName("b"))}));
  EXPECT_FALSE(group_ingress_bytes(domains(rows, {6}), domains(rows, {6}), {{2, 1}}, 4));
  EXPECT_EQ(*group_ingress_bytes(domains(rows, {6}), domains(rows, {6}), {{3, 1}}, 4), (std::vector<int64_t>{0, 0}));
}

}  // namespace
}  // namespace artifex_devices::planner
