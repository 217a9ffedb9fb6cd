// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/cluster/cluster.h"

#include <gtest/gtest.h>

#include <string>

#include "artifex_devices/base/error.h"
#include "artifex_devices/cluster/cluster_presets.h"

namespace artifex_devices {
namespace {

template <class F>
std::string error_of(F&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

bool says(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST(Cluster, ComputesPlacesFromIds) {
  const ClusterRef cluster = tpu_cluster("v5p", {4, 4, 8}, 2);
  EXPECT_EQ(cluster->device_count(), 256);
  EXPECT_EQ(cluster->process_count(), 64);
  const ClusterPlace at = cluster->place_of(130);
  EXPECT_EQ(at.slice, 1);
  EXPECT_EQ(at.process, 33);
  EXPECT_EQ(at.chip, 2);
  EXPECT_EQ(at.coords, (std::array<int, 3>{2, 0, 0}));
  EXPECT_EQ(at.core_on_chip, 0);
  EXPECT_EQ(at.local_id, 0);
  EXPECT_EQ(cluster->place_of(255).coords, (std::array<int, 3>{3, 3, 7}));
  EXPECT_EQ(cluster->place_of(255).local_id, 3);
  EXPECT_EQ(cluster->device_memory_bytes(), int64_t{95} << 30);
}

TEST(Cluster, FindsEveryDeviceByItsPlace) {
  const ClusterRef cluster = tpu_cluster("7x", {2, 2, 4}, 3);
  EXPECT_EQ(cluster->device_count(), 96);  // two per chip
  std::vector<int> of_process(static_cast<size_t>(cluster->process_count()));
  for (int64_t id = 0; id < cluster->device_count(); ++id) {
    const ClusterPlace at = cluster->place_of(id);
    EXPECT_EQ(cluster->device_at(at.slice, at.chip, at.core_on_chip), id);
    EXPECT_EQ(at.chip, at.coords[0] + 2 * (at.coords[1] + 2 * at.coords[2]));
    ++of_process[static_cast<size_t>(at.process)];
  }
  EXPECT_EQ(of_process, std::vector<int>(12, 8));
  EXPECT_EQ(cluster->device_memory_bytes(), int64_t{96} << 30);
}

TEST(Cluster, WrapsToriByTheRuleOfTheirChip) {
  using Wraps = std::vector<bool>;
  EXPECT_EQ(tpu_cluster("v4", {4, 4, 8}, 1)->inside().wraps, (Wraps{true, true, true}));
  EXPECT_EQ(tpu_cluster("v4", {2, 4, 4}, 1)->inside().wraps, (Wraps{false, false, false}));
  EXPECT_EQ(tpu_cluster("v5e", {8, 16}, 1)->inside().wraps, (Wraps{false, true}));
  EXPECT_EQ(tpu_cluster("v6e", {8, 8}, 1)->inside().wraps, (Wraps{false, false}));
}

TEST(Cluster, LimitsHostsToTheSlice) {
  using Shape = std::vector<int>;
  EXPECT_EQ(tpu_cluster("v5e", {1, 1}, 1)->parts().host_shape, (Shape{1, 1}));
  EXPECT_EQ(tpu_cluster("v5e", {2, 4}, 1)->parts().host_shape, (Shape{2, 4}));
  EXPECT_EQ(tpu_cluster("v5e", {4, 8}, 1)->parts().host_shape, (Shape{4, 2}));
  EXPECT_EQ(tpu_cluster("v4", {2, 2, 1}, 1)->process_count(), 1);
}

TEST(Cluster, StoresTheSourcesOfItsNumbers) {
  const ClusterRef pod = gpu_cluster("h100", 64, {});
  EXPECT_EQ(pod->device_count(), 512);
  EXPECT_EQ(pod->link_bandwidth(), (SourcedNumber{4.5e11, "S8"}));
  EXPECT_EQ(pod->network_bandwidth(), (SourcedNumber{5e10, "S8"}));
  EXPECT_EQ(pod->chip().peak(MatmulFormat::kBFloat16), (SourcedNumber{9.89e14, "S8 S10 S12"}));
  const ClusterRef mesh = gpu_cluster("mi300x", 1, {});
  EXPECT_EQ(mesh->inside().kind, NetworkKind::kFullMesh);
  EXPECT_EQ(mesh->link_bandwidth(), (SourcedNumber{6.4e10, "S12"}));
  EXPECT_EQ(gpu_cluster("gb200", 2, {})->process_count(), 36);
  EXPECT_EQ(gpu_cluster("v100", 2, {})->chips_per_slice(), 16);
  const std::string text = error_of([] { gpu_cluster("v100", 2, {})->network_bandwidth(); });
  EXPECT_EQ(
      text,
      "cluster \"2 nodes x 16 v100\": its bandwidth between slices is not known; expected a number to compute seconds "
      "with; give `network_bandwidth` (bytes/s of each chip, one way)");
}

TEST(Cluster, ListsKnownNamesInErrors) {
  EXPECT_EQ(error_of([] { tpu_cluster("v5e", {4, 16}, 1); }),
            "cluster.tpu: TPU v5e has no slices of 4x16; expected one of 1x1, 2x2, 2x4, 4x4, 4x8, 8x8, 8x16, 16x16, or "
            "the same with the axes swapped");
  EXPECT_EQ(
      error_of([] { tpu_cluster("v5p", {8, 4, 4}, 1); }),
      "cluster.tpu: TPU v5p has no slices of 8x4x4; expected one of 2x2x1, 2x2x2, 2x2x4, 2x4x4, or three multiples of "
      "4, ascending, up to 16x20x28; sort the axes, or describe another torus in a TOML file (cluster.from_toml)");
  EXPECT_EQ(error_of([] { tpu_cluster("v9", {2, 2}, 1); }),
            "cluster.tpu: \"v9\" is not a generation with known links; expected one of v4, v5e, v5p, v6e, 7x");
  EXPECT_TRUE(says(error_of([] { tpu_cluster("v4", {2, 2}, 1); }), "the shape 2x2 does not fit TPU v4; expected 3"));
  EXPECT_TRUE(
      says(error_of([] { gpu_cluster("k80", 1, {}); }), "expected one of v100, v100-32gb, a100, a100-40gb, h1"));
}

TEST(Cluster, ReportsAllFaultsAtOnce) {
  ClusterParts parts = tpu_cluster("v4", {2, 2, 1}, 1)->parts();
  parts.inside.wraps.pop_back();
  parts.inside.bandwidth->value = -1;
  parts.host_shape = {2, 3, 1};
  parts.slices = 0;
  const std::string text = error_of([&] { Cluster::make(parts); });
  EXPECT_EQ(text,
            "cluster \"TPU v4 2x2x1\": wraps has 2 values; expected one for each of the 3 axes; host_shape[1] is 3; "
            "expected a divisor of dims[1], 2; the slice's bandwidth is -1; expected a finite number above 0; slices "
            "is 0; expected 1 or more");
  parts = tpu_cluster("v4", {16, 16, 16}, 1)->parts();
  parts.slices = 4097;
  EXPECT_EQ(
      error_of([&] { Cluster::make(parts); }),
      "cluster \"TPU v4 16x16x16\": 4097 slices of 16x16x16 chips have 16781312 devices; expected 16777216 at most");
  parts.slices = INT64_MAX;
  EXPECT_TRUE(says(error_of([&] { Cluster::make(parts); }), "more than 2^63 devices"));
}

TEST(Cluster, ConnectsAtMost1024ChipsWithOneSwitch) {
  EXPECT_EQ(gpu_cluster("h100", 1, {.chips_per_node = 1024})->device_count(), 1024);
  EXPECT_EQ(error_of([] { gpu_cluster("h100", 1, {.chips_per_node = 1'000'000}); }),
            "cluster \"1000000 h100\": dims is [1000000]; expected at most 1024 chips joined by one switch; plan with "
            "several slices or nodes");
  EXPECT_TRUE(says(error_of([] { gpu_cluster("mi300x", 1, {.chips_per_node = 1025}); }), "joined by one full mesh"));
}

TEST(Cluster, GpusOfOneKindAreJoinedAsInTheirNodes) {
  const char* kH100 = "NVIDIA H100 80GB HBM3";
  const ClusterRef four = links_of_gpus(kH100, 4);
  EXPECT_EQ(four->device_count(), 4);
  EXPECT_EQ(four->parts().slices, 1);
  EXPECT_EQ(four->parts().inside.bandwidth->value, 450e9);
  EXPECT_EQ(links_of_gpus(kH100, 8)->parts().slices, 1);
  EXPECT_EQ(links_of_gpus(kH100, 16)->parts().slices, 2);
  EXPECT_EQ(links_of_gpus(kH100, 12), nullptr);  // no whole nodes
  EXPECT_EQ(links_of_gpus(kH100, 0), nullptr);
  EXPECT_EQ(links_of_gpus("emulated GPU", 4), nullptr);
}

}  // namespace
}  // namespace artifex_devices
