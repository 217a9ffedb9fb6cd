// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/render/reshard_svg.h"

#include <gtest/gtest.h>

#include "../sharding/worlds.h"
#include "artifex_devices/cluster/cluster_presets.h"
#include "artifex_devices/device/cluster_client.h"
#include "artifex_devices/render/traffic_groups.h"
#include "artifex_devices/sharding/named_sharding.h"
#include "svg_parts.h"

namespace artifex_devices {
namespace {

ShardingRef cut(const MeshRef& mesh, int64_t dimension) {
  std::vector<SpecEntry> entries(2);
  entries[static_cast<size_t>(dimension)] = SpecEntry(names({"x"}));
  return NamedSharding::make(mesh, PartitionSpec(std::move(entries)), MemoryKind::kDevice, Uneven::kError);
}

std::vector<int64_t> counted(int64_t count) {
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < count; ++i) ids.push_back(i);
  return ids;
}

/// Every device sends `bytes` to every device, itself included.
std::vector<DeviceTraffic> all_to_all(int64_t count, int64_t bytes) {
  std::vector<DeviceTraffic> traffic;
  for (int64_t from = 0; from < count; ++from) {
    for (int64_t to = 0; to < count; ++to) traffic.push_back({from, to, bytes});
  }
  return traffic;
}

TEST(TrafficGroups, ConnectDevicesWhenPairsAreFew) {
  const TrafficGroups groups =
      group_traffic({{0, 1, 8}, {0, 1, 4}, {1, 1, 5}, {1, 0, 0}}, {0, 1}, {0, 1}, nullptr, 8, 8);
  EXPECT_EQ(groups.kind, TrafficGroups::Kind::kDevices);
  ASSERT_EQ(groups.arrows.size(), 1u);  // bytes of a pair add up; a pair without bytes has no arrow
  EXPECT_EQ(groups.arrows[0].from, 0);
  EXPECT_EQ(groups.arrows[0].to, 1);
  EXPECT_EQ(groups.arrows[0].bytes, 12);
  EXPECT_EQ(groups.internal, (std::map<int64_t, int64_t>{{1, 5}}));
  EXPECT_EQ(groups.note({{"same slice", 12}}), "");
}

TEST(TrafficGroups, ConnectHostsThenSlicesThenTheBusiestDevice) {
  const ClusterRef slices = tpu_cluster("v4", {2, 2, 2}, 2);  // 4 hosts of 4 chips
  const auto group = [&](int64_t most) {
    return group_traffic(all_to_all(16, 10), counted(16), counted(16), slices.get(), most, 24);
  };
  const TrafficGroups hosts = group(32);
  EXPECT_EQ(hosts.kind, TrafficGroups::Kind::kHosts);
  EXPECT_EQ(hosts.arrows.size(), 12u);
  EXPECT_EQ(hosts.arrows[0].bytes, 160);  // 4 devices to 4
  EXPECT_EQ(hosts.internal.at(0), 160);
  EXPECT_EQ(hosts.note({{"same slice", 1280}, {"network", 0}}),
            "arrows: between hosts, which stand for 240 pairs of devices; in all 1.2 KiB same slice");
  const TrafficGroups two = group(4);
  EXPECT_EQ(two.kind, TrafficGroups::Kind::kSlices);
  EXPECT_EQ(two.arrows.size(), 2u);
  EXPECT_EQ(two.arrows[0].bytes, 640);
  const TrafficGroups one = group(1);
  EXPECT_EQ(one.kind, TrafficGroups::Kind::kBusiest);
  EXPECT_EQ(one.to, std::vector<int64_t>{0});
  EXPECT_EQ(one.arrows.size(), 1u);
  EXPECT_EQ(one.internal, (std::map<int64_t, int64_t>{{0, 10}}));
  EXPECT_EQ(one.note({}), "arrows: what the busiest device receives, 1 of 240 pairs of devices");
  // Without a cluster, hosts are unknown.
  EXPECT_EQ(group_traffic(all_to_all(16, 1), counted(16), counted(16), nullptr, 32, 24).kind,
            TrafficGroups::Kind::kBusiest);
  EXPECT_EQ(message_of<InvalidArgument>([] { group_traffic({{0, 7, 1}}, {0, 1}, {0, 1}, nullptr, 8, 8); }),
            "reshard_svg: traffic goes from device 0 to 7; expected devices of the source and of the destination");
}

TEST(ReshardSvg, LabelsArrowsWithTheirBytes) {
  const ClientRef client = world_of(2);
  const MeshRef mesh = mesh_of(client, {2}, {"x"});
  const ReshardPicture picture{"<rows & columns>", {"4 direct copies"}, all_to_all(2, 2048), "", {}, nullptr};
  const std::string svg = reshard_svg(*cut(mesh, 0), *cut(mesh, 1), {4, 8}, picture);
  EXPECT_TRUE(is_well_formed(svg));
  EXPECT_EQ(labels(svg), (std::vector<std::string>{"&lt;rows &amp; columns&gt;",
                                                   "before",
                                                   "after",
                                                   "dimension 1: 8",
                                                   "dimension 0: 4, sharded over x",
                                                   "CPU 0",
                                                   "CPU 1",
                                                   "dimension 1: 8, sharded over x",
                                                   "dimension 0: 4",
                                                   "CPU 0",
                                                   "CPU 1",
                                                   "4 direct copies",
                                                   "2.0 KiB",
                                                   "2.0 KiB",
                                                   "2.0 KiB stay",
                                                   "2.0 KiB stay",
                                                   "CPU 0",
                                                   "CPU 1",
                                                   "CPU 0",
                                                   "CPU 1",
                                                   "tiles of one colour in a column hold the same part of the array"}));
  EXPECT_EQ(found(svg, "fill=\"none\" stroke=\"#", "", "\""), (std::vector<std::string>{"d97706", "3b82f6"}));
}

TEST(ReshardSvg, NamesHostsWithTheirDevices) {
  const ClusterRef cluster = gpu_cluster("h100", 2, {});
  const MeshRef mesh = mesh_of(make_cluster_client(cluster), {16}, {"x"});
  const ReshardPicture picture{"r", {}, all_to_all(16, 1 << 20), "", {{"network", 128 << 20}}, cluster.get()};
  const std::vector<std::string> texts = labels(reshard_svg(*cut(mesh, 0), *cut(mesh, 1), {16, 16}, picture));
  EXPECT_EQ(std::vector<std::string>(texts.end() - 9, texts.end()),
            (std::vector<std::string>{
                "64.0 MiB", "64.0 MiB", "64.0 MiB inside", "64.0 MiB inside", "host 0: GPU 0-7", "host 1: GPU 8-15",
                "host 0: GPU 0-7", "host 1: GPU 8-15",
                "arrows: between hosts, which stand for 240 pairs of devices; in all 128.0 MiB network"}));
}

TEST(ReshardSvg, ExplainsMissingTraffic) {
  const MeshRef mesh = mesh_of(world_of(2), {2}, {"x"});
  const ReshardPicture collectives{"r", {"all-to-all", "1.0 MiB"}, {}, "not drawn", {}, nullptr};
  std::vector<std::string> texts = labels(reshard_svg(*cut(mesh, 0), *cut(mesh, 1), {4, 8}, collectives));
  EXPECT_EQ(std::vector<std::string>(texts.end() - 3, texts.end()),
            (std::vector<std::string>{"all-to-all", "1.0 MiB", "not drawn"}));
  const ReshardPicture nothing{"r", {"nothing to do"}, {{0, 0, 64}, {1, 1, 64}}, "", {}, nullptr};
  EXPECT_EQ(labels(reshard_svg(*cut(mesh, 0), *cut(mesh, 0), {4, 8}, nothing)).back(),
            "nothing goes from device to device");
}

}  // namespace
}  // namespace artifex_devices
