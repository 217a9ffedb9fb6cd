// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/reshard/part_ingress.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "made_clusters.h"
#include "reference_pairs.h"

namespace artifex_devices::planner {
namespace {

/// By arithmetic, and, with two devices exchanged that hold the same at both ends, by what each holds.
TEST(PartIngress, BothAlgorithmsAgree) {
  const ClusterRef cluster = made_cluster(NetworkKind::kTorus, {4, 2}, {true, false}, 2, 2);  // hosts of 2 x 1 chips
  const AbstractMesh mesh({AxisName("a"), AxisName("b"), AxisName("c")}, {4, 4, 2});
  const TileGrid from(mesh, spec_of({{"a"}, {}}));
  const TileGrid to(mesh, spec_of({{}, {"b"}}));
  const ShardDomains::Names names{.operation = "test"};
  const ShardDomains source(from, {8, 8}, Uneven::kError, names);
  const ShardDomains destination(to, {8, 8}, Uneven::kError, names);
  std::vector<int64_t> in_order(32);
  std::iota(in_order.begin(), in_order.end(), int64_t{0});
  std::vector<int64_t> exchanged = in_order;
  std::swap(exchanged[0], exchanged[1]);  // cores of one chip: they differ in c
  for (const ClusterPart part : {ClusterPart::kChip, ClusterPart::kHost, ClusterPart::kSlice}) {
    EXPECT_EQ(part_ingress_bytes(source, in_order, destination, in_order, *cluster, part, 1),
              part_ingress_bytes(source, exchanged, destination, exchanged, *cluster, part, 1));
  }
  // A slice has rows of two of the four a, wants all columns: the half that it lacks.
  EXPECT_EQ(part_ingress_bytes(source, in_order, destination, in_order, *cluster, ClusterPart::kSlice, 1),
            (std::vector<int64_t>{32, 32}));
  EXPECT_EQ(part_ingress_bytes(source, in_order, destination, in_order, *cluster, ClusterPart::kHost, 1),
            std::vector<int64_t>(8, 8 * 4 - 2 * 4));
}

TEST(PartIngress, NumbersPartsInTheOrderOfTheirBytes) {
  const ClusterRef cluster = made_cluster(NetworkKind::kTorus, {4}, {false}, 1, 2);
  EXPECT_EQ(part_numbers({5, 4, 0}, {7, 0}, *cluster, ClusterPart::kChip), (std::vector<int64_t>{2, 0, 3}));
  const AbstractMesh mesh({AxisName("a")}, {3});
  const ShardDomains::Names names{.operation = "test"};
  const TileGrid cut(mesh, spec_of({{"a"}}));
  const TileGrid uncut(mesh, spec_of({{}}));
  const ShardDomains rows(cut, {12}, Uneven::kError, names);
  const ShardDomains whole(uncut, {12}, Uneven::kError, names);
  // Chip 2 has the rows of devices 5 and 4, chip 0 those of device 0.
  EXPECT_EQ(part_ingress_bytes(rows, {5, 4, 0}, whole, {5, 4, 0}, *cluster, ClusterPart::kChip, 1),
            (std::vector<int64_t>{4, 8}));
}

}  // namespace
}  // namespace artifex_devices::planner
