// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/cluster/cluster_file.h"

#include <gtest/gtest.h>

#include <functional>

#include "artifex_devices/base/error.h"

namespace artifex_devices {
namespace {

ClusterFile four_h100() {
  ClusterFile file;
  file.chip.name = "h100";
  file.slice.chips = 4;
  return file;
}

std::string problem_of(const std::function<void(ClusterFile*)>& change) {
  ClusterFile file = four_h100();
  change(&file);
  try {
    Cluster::make(cluster_parts(file, "/lab/lab.toml"));
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "";
}

TEST(ClusterFile, MissingKeysHaveTheCataloguesValues) {
  ClusterFile file = four_h100();
  file.host.nics = 2;
  file.host.nic_bandwidth = 5e10;
  const ClusterParts parts = cluster_parts(file, "/lab/lab.toml");
  EXPECT_EQ(parts.name, "lab.toml");
  EXPECT_EQ(parts.chip.name, "NVIDIA H100 SXM");
  EXPECT_EQ(parts.inside.kind, NetworkKind::kSwitch);
  EXPECT_EQ(parts.host_shape, std::vector<int>{4});
  EXPECT_EQ(parts.between.bandwidth->value, 2.5e10);
  EXPECT_EQ(parts.between.bandwidth->source, "/lab/lab.toml");
}

TEST(ClusterFile, ContradictionsAreRefused) {
  const auto expect = [](const char* text, const std::function<void(ClusterFile*)>& change) {
    EXPECT_PRED_FORMAT2(testing::IsSubstring, text, problem_of(change));
  };
  expect("[chip] has no name", [](ClusterFile* file) { file->chip.name.reset(); });
  expect("which is not in the catalogue, and no platform", [](ClusterFile* file) { file->chip.name = "mine"; });
  expect("and the platform 'tpu'; expected 'gpu'", [](ClusterFile* file) { file->chip.platform = "tpu"; });
  expect("which belongs to 'NVIDIA H200", [](ClusterFile* file) { file->chip.device_kind = "NVIDIA H200"; });
  expect("peak_flops names \"int7\"", [](ClusterFile* file) { file->chip.peak_flops["int7"] = 1; });
  expect("[slice] has no size", [](ClusterFile* file) { file->slice.chips.reset(); });
  expect("[slice] has dims and chips", [](ClusterFile* file) { file->slice.dims = {4}; });
  expect("[slice] has the kind 'torus' and chips", [](ClusterFile* file) { file->slice.kind = "torus"; });
  expect("network is \"star\"", [](ClusterFile* file) { file->slice.kind = "star"; });
  expect("[host] has shape and chips", [](ClusterFile* file) {
    file->host.shape = {4};
    file->host.chips = 4;
  });
  expect("expected nic_bandwidth too", [](ClusterFile* file) { file->host.nics = 3; });
  expect("[network] has a bandwidth and [host] has NICs", [](ClusterFile* file) {
    file->host.nics = 3;
    file->network_bandwidth = 1e10;
  });
}

}  // namespace
}  // namespace artifex_devices
