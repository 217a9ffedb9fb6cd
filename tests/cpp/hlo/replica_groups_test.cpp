// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/hlo/replica_groups.h"

#include <gtest/gtest.h>

#include "artifex_devices/hlo/mesh_axes.h"

namespace artifex_devices::hlo {
namespace {

TEST(ReplicaGroups, ReadsLists) {
  EXPECT_EQ(parse_groups("{{0,1},{2,3}}"), (Groups{{0, 1}, {2, 3}}));
  EXPECT_EQ(parse_groups("{{0,2,1}}"), (Groups{{0, 2, 1}}));
  EXPECT_EQ(parse_groups("{}"), Groups{});
}

TEST(ReplicaGroups, ReadsRowsOfCounts) {
  EXPECT_EQ(parse_groups("[2,4]<=[8]"), (Groups{{0, 1, 2, 3}, {4, 5, 6, 7}}));
  // 0..7 as 4 rows of 2, transposed: columns become rows.
  EXPECT_EQ(parse_groups("[2,4]<=[4,2]T(1,0)"), (Groups{{0, 2, 4, 6}, {1, 3, 5, 7}}));
  // [i,j,k] at 4 i + 2 j + k, in the order k, j, i.
  EXPECT_EQ(parse_groups("[4,2]<=[2,2,2]T(2,1,0)"), (Groups{{0, 4}, {2, 6}, {1, 5}, {3, 7}}));
}

TEST(ReplicaGroups, ReadsAxesOfMeshes) {
  EXPECT_EQ(parse_groups("mesh['a'=4,'b'=2] {'b'}"), (Groups{{0, 1}, {2, 3}, {4, 5}, {6, 7}}));
  EXPECT_EQ(parse_groups("mesh['a'=4,'b'=1] {'a'}"), (Groups{{0, 1, 2, 3}}));
  EXPECT_EQ(parse_groups("mesh['a'=2,'b'=2] {}"), (Groups{{0}, {1}, {2}, {3}}));
}

TEST(ReplicaGroups, ReadsPartsOfAxes) {
  // a = 4 is 2 x 2: the first part has stride 2 of a, which has stride 2 of devices.
  EXPECT_EQ(parse_groups("mesh['a'=4,'b'=2] {'a':(1)2}"), (Groups{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
  EXPECT_EQ(parse_groups("mesh['a'=4,'b'=2] {'a':(2)2}"), (Groups{{0, 2}, {1, 3}, {4, 6}, {5, 7}}));
}

TEST(ReplicaGroups, ReadsMeshesWithDeviceIds) {
  // Positions 0..7 of a = 4, b = 2 have the devices 0 4 1 5 2 6 3 7.
  EXPECT_EQ(parse_groups("mesh['a'=4,'b'=2], device_ids=([2,4]T(1,0)) {'b'}"),
            (Groups{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
  EXPECT_EQ(parse_groups("mesh['a'=2,'b'=2], device_ids=(3,1,2,0) {'b'}"), (Groups{{3, 1}, {2, 0}}));
}

TEST(ReplicaGroups, ReadsDenseAttributes) {
  EXPECT_EQ(parse_groups("dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>"), (Groups{{0, 1}, {2, 3}}));
  EXPECT_EQ(parse_groups("dense<0> : tensor<1x1xi64>"), (Groups{{0}}));
  EXPECT_EQ(parse_groups("dense<\"0x00000000000000000100000000000000\"> : tensor<1x2xi64>"), (Groups{{0, 1}}));
  EXPECT_EQ(parse_groups("dense<[[0, 1], [2, -1]]> : tensor<2x2xi64>"), (Groups{{0, 1}, {2}}));  // uneven
}

TEST(ReplicaGroups, RefusesWhatIsCutOrTooLarge) {
  for (const char* text :
       {"", "5", "{{0,1}", "{{0,1},{2", "[2,4]<=[4]", "[2,4]<=[4,2]T(1,1)", "[1,9999999]<=[9999999]",
        "mesh['a'=2] {'b'}", "mesh['a'=2", "mesh['a'=4] {'a':(3)2}", "dense<[[0, 1]", "{{{0}}}", "{{4000000000}}"}) {
    EXPECT_EQ(parse_groups(text), std::nullopt) << text;
  }
}

TEST(ReplicaGroups, PairsHaveTwoMembers) {
  EXPECT_EQ(parse_pairs("{{0,1},{1,0}}"), (Groups{{0, 1}, {1, 0}}));
  EXPECT_EQ(parse_pairs("{{0,1,2}}"), std::nullopt);
}

const MeshAxes kMesh = {{"data", 2}, {"fsdp", 2}, {"model", 2}};
using Axes = std::vector<size_t>;

TEST(MeshAxesOfGroups, AreThoseThatVary) {
  EXPECT_EQ(axes_of_groups({{0, 1}, {2, 3}, {4, 5}, {6, 7}}, kMesh), (Axes{2}));
  EXPECT_EQ(axes_of_groups({{0, 4}, {1, 5}, {2, 6}, {3, 7}}, kMesh), (Axes{0}));
  EXPECT_EQ(axes_of_groups({{0, 1, 4, 5}, {2, 3, 6, 7}}, kMesh), (Axes{0, 2}));
  EXPECT_EQ(axes_of_groups({{5, 4, 1, 0}, {7, 6, 3, 2}}, kMesh), (Axes{0, 2}));  // in another order
  EXPECT_EQ(axes_of_groups({{0, 1, 2, 3, 4, 5, 6, 7}}, kMesh), (Axes{0, 1, 2}));
  EXPECT_EQ(axes_of_groups({{0}, {1}}, kMesh), Axes{});
}

TEST(MeshAxesOfGroups, DoNotExistForOtherGroups) {
  EXPECT_EQ(axes_of_groups({{0, 3}, {1, 2}}, kMesh), std::nullopt);  // a diagonal
  EXPECT_EQ(axes_of_groups({{0, 1}, {2, 4}}, kMesh), std::nullopt);  // different axes
  EXPECT_EQ(axes_of_groups({{0, 8}}, kMesh), std::nullopt);          // outside the mesh
  EXPECT_EQ(axes_of_groups({{0, 0}}, kMesh), std::nullopt);
  EXPECT_EQ(axes_of_groups({{0, 1}}, {}), std::nullopt);
}

TEST(MeshAxesOfPairs, AreThoseInWhichPairsDiffer) {
  EXPECT_EQ(axes_of_pairs({{0, 4}, {4, 0}, {1, 5}}, kMesh), (Axes{0}));
  EXPECT_EQ(axes_of_pairs({{0, 3}, {3, 0}}, kMesh), (Axes{1, 2}));
  EXPECT_EQ(axes_of_pairs({{0, 0}}, kMesh), Axes{});
}

TEST(FindMesh, TakesTheStridesOfTheGroups) {
  const Groups rows = {{0, 1}, {2, 3}, {4, 5}, {6, 7}}, columns = {{0, 2, 4, 6}, {1, 3, 5, 7}};
  EXPECT_EQ(find_mesh({&rows, &columns}, 8), (MeshAxes{{"axis_0", 4}, {"axis_1", 2}}));
  EXPECT_EQ(find_mesh({&rows}, 8), (MeshAxes{{"axis_0", 4}, {"axis_1", 2}}));
  const Groups all = {{0, 1, 2, 3, 4, 5, 6, 7}}, outer = {{0, 1, 4, 5}, {2, 3, 6, 7}};
  EXPECT_EQ(find_mesh({&all}, 8), (MeshAxes{{"axis_0", 8}}));
  EXPECT_EQ(find_mesh({&outer}, 8), (MeshAxes{{"axis_0", 2}, {"axis_1", 2}, {"axis_2", 2}}));
  EXPECT_EQ(find_mesh({}, 8), MeshAxes{});
}

TEST(DeclaredMesh, IsReadFromShardy) {
  const MeshAxes expected = {{"data", 4}, {"model", 2}};
  EXPECT_EQ(declared_mesh("  sdy.mesh @mesh = <[\"data\"=4, \"model\"=2]>"), expected);
  EXPECT_EQ(declared_mesh("x={mesh = #sdy.mesh<[\\\"data\\\"=4, \\\"model\\\"=2]>}"), expected);
  EXPECT_EQ(declared_mesh("sdy.mesh @mesh = <[\"data\"=4], device_ids=[3,2,1,0]>"), MeshAxes{});
  EXPECT_EQ(declared_mesh("no mesh"), MeshAxes{});
}

}  // namespace
}  // namespace artifex_devices::hlo
