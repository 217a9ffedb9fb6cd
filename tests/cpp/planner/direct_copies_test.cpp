// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/reshard/direct_copies.h"

#include <gtest/gtest.h>

#include "artifex_devices/base/error.h"
#include "made_clusters.h"
#include "reference_pairs.h"

namespace artifex_devices::planner {
namespace {

TEST(DirectCopies, DeliverTheBytesThatEachDeviceLacks) {
  const std::vector<ReferencePair> pairs = reference_pairs();
  if (pairs.empty()) GTEST_SKIP() << "the table of reshard costs is not beside this checkout";
  const AbstractMesh mesh({AxisName("x"), AxisName("y")}, {4, 2});
  const ClusterRef cluster = made_cluster(NetworkKind::kSwitch, {4}, {}, 2);
  const std::vector<int64_t> devices = {0, 1, 2, 3, 4, 5, 6, 7};
  for (const ReferencePair& pair : pairs) {
    SCOPED_TRACE(pair.line);
    const TileGrid from(mesh, pair.source);
    const TileGrid to(mesh, pair.destination);
    const ShardDomains::Names names{.operation = "test"};
    const PlacedEnd source = place_on_cluster(ShardDomains(from, {16, 16}, Uneven::kError, names), devices, *cluster);
    const PlacedEnd destination =
        place_on_cluster(ShardDomains(to, {16, 16}, Uneven::kError, names), devices, *cluster);
    const DirectCopies direct = make_direct_copies(source, destination, 4);
    EXPECT_EQ(direct.bytes_in, pair.numbers("ingress_per_device"));
    const int64_t both = 1024 / from.tiles() + 1024 / to.tiles();
    EXPECT_EQ(direct.peak_bytes, pair.value("pure_alias") == "true" ? 1024 / from.tiles() : both);
    const MessagesPrice price = price_messages(*cluster, messages_of(direct, source, destination));
    EXPECT_EQ(price.bytes[0] + price.bytes[1] + price.bytes[2] + price.bytes[3], direct.plan.bytes_copied());
    EXPECT_EQ(price.bytes[2] + price.bytes[3], pair.number("total_ingress"));
    EXPECT_EQ(price.bytes[3], direct.plan.bytes_over(LinkKind::kOtherHost));
    EXPECT_GE(price.price.expected.seconds(),
              least_seconds(*cluster, direct.bytes_in, pair.numbers("interhost_ingress")));
  }
}

TEST(DirectCopies, AreCountedInAdvance) {
  const ClusterRef cluster = made_cluster(NetworkKind::kSwitch, {8}, {});
  const AbstractMesh mesh({AxisName("x"), AxisName("y")}, {4, 2});
  const auto copies = [&](const std::vector<std::vector<std::string>>& from,
                          const std::vector<std::vector<std::string>>& to, const Dims& shape) {
    const TileGrid source(mesh, spec_of(from));
    const TileGrid destination(mesh, spec_of(to));
    const ShardDomains::Names names{.operation = "test"};
    const std::vector<int64_t> devices = {0, 1, 2, 3, 4, 5, 6, 7};
    const PlacedEnd a = place_on_cluster(ShardDomains(source, shape, Uneven::kLastShort, names), devices, *cluster);
    const PlacedEnd b =
        place_on_cluster(ShardDomains(destination, shape, Uneven::kLastShort, names), devices, *cluster);
    const double most = most_copies(a, b);
    EXPECT_GE(most, static_cast<double>(make_direct_copies(a, b, 1).plan.copy_count()));
    return most;
  };
  EXPECT_EQ(copies({{"x"}, {}}, {{}, {"x"}}, {16, 16}), 8 * 4);
  EXPECT_EQ(copies({{"x"}, {"y"}}, {{}, {}}, {16, 16}), 8 * 8);
  EXPECT_EQ(copies({{}, {}}, {{"x"}, {"y"}}, {16, 16}), 8);
  EXPECT_EQ(copies({{"x"}, {}}, {{"y"}, {}}, {5, 3}), 8 * 2);
  EXPECT_EQ(copies({{"x"}, {}}, {{"y"}, {}}, {0, 3}), 0);
}

TEST(DirectCopies, RequireDevicesOfTheCluster) {
  const ClusterRef cluster = made_cluster(NetworkKind::kSwitch, {4}, {});
  const AbstractMesh mesh({AxisName("x")}, {2});
  const TileGrid grid(mesh, spec_of({{"x"}}));
  const ShardDomains domains(grid, {8}, Uneven::kError, {.operation = "test"});
  EXPECT_THROW(place_on_cluster(domains, {3, 4}, *cluster), InvalidArgument);
  EXPECT_THROW(place_on_cluster(domains, {3}, *cluster), InvalidArgument);
  EXPECT_EQ(place_on_cluster(domains, {3, 2}, *cluster).places[PlaceId(0)].process, ProcessIndex(1));
}

}  // namespace
}  // namespace artifex_devices::planner
