// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/cluster/cluster_text.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "../base/message_of.h"
#include "artifex_devices/cluster/cluster_presets.h"

namespace artifex_devices {
namespace {

std::string name_of(std::string_view text) { return cluster_from_text(text)->parts().name; }
std::string refusal(std::string_view text) {
  return message_of([&] { cluster_from_text(text); });
}

TEST(ClusterText, ReadsGpusByNumberByNodesAndByRacks) {
  for (const char* text : {"64xH100", "h100 x 64", "64 h100", "64 x h100", "8x8 h100", "8 x 8 h100", "8 nodes x 8 h100",
                           "8 nodes of 8 H100", "8 x dgx h100", "dgx h100 x 8", "8xdgx h100", "hgx h100 nodes=8",
                           "gpus h100 nodes=8", "64 nvidia h100", "64 h100 nodes=8", "64 NVIDIA H100 80GB HBM3"}) {
    EXPECT_EQ(name_of(text), "8 nodes x 8 h100") << text;
  }
  EXPECT_EQ(name_of("4 h100"), "4 h100");
  EXPECT_EQ(name_of("16x4 h100"), "16 nodes x 4 h100");
  EXPECT_EQ(name_of("h100 nodes=2 chips_per_node=16"), "2 nodes x 16 h100");
  EXPECT_EQ(name_of("dgx v100"), "16 v100");
  EXPECT_EQ(name_of("mi300x"), "8 mi300x");
  EXPECT_EQ(name_of("a100-40gb x 16"), "2 nodes x 8 a100-40gb");
  for (const char* text : {"gb200 nvl72", "nvl72", "72 gb200", "nvl72 racks=1"}) EXPECT_EQ(name_of(text), "72 gb200");
  for (const char* text : {"2 x nvl72", "144 x gb200", "gb200 nvl72 x 2"}) {
    EXPECT_EQ(name_of(text), "2 nodes x 72 gb200") << text;
  }
}

TEST(ClusterText, ReadsTpusByShapeAndByNumber) {
  for (const char* text : {"v5e-256", "v5litepod-256", "TPU v5e 16x16", "v5e 16 x 16", "256 v5e", "v5e x 256"}) {
    EXPECT_EQ(name_of(text), "TPU v5e 16x16") << text;
  }
  for (const char* text : {"2 x v5e 16x16", "2 x v5e-256", "tpu v5e 16x16 slices=2"}) {
    EXPECT_EQ(name_of(text), "2 x TPU v5e 16x16") << text;
  }
  EXPECT_EQ(name_of("trillium-64"), "TPU v6e 8x8");
  EXPECT_EQ(name_of("tpu 7x 4x4x4"), "TPU7x 4x4x4");
  EXPECT_EQ(name_of("tpu7x-128"), "TPU7x 4x4x8");
  EXPECT_EQ(name_of("v4-512"), "TPU v4 4x8x8");  // TensorCores, two of a chip
  EXPECT_EQ(name_of("v5p-16"), "TPU v5p 2x2x2");
  EXPECT_EQ(name_of("512 v5p"), "TPU v5p 8x8x8");  // the most compact of 4x4x32, 4x8x16 and 8x8x8
}

TEST(ClusterText, ReadsRates) {
  const ClusterRef cluster = cluster_from_text("16 h100 network_bandwidth=5e10 host_memory=1e12");
  EXPECT_EQ(cluster->parts().between.bandwidth, (SourcedNumber{5e10, "given"}));
  EXPECT_EQ(cluster->parts().host_memory, (SourcedNumber{1e12, "given"}));
}

TEST(ClusterText, NamesTwoTextsInPlaceOfACountThatNoClusterHas) {
  EXPECT_EQ(
      refusal("60 h100"),
      "cluster.from_text: '60 h100' has 60 GPUs; expected a multiple of 8, the GPUs of a node; write '56 x h100' or '64 x h100'");
  EXPECT_EQ(refusal("h100"),
            "cluster.from_text: 'h100' has no size; expected a number of GPUs; write '1 x h100' or '8 x h100'");
  EXPECT_EQ(
      refusal("v5e-100"),
      "cluster.from_text: 'v5e-100' has 100 chips; expected the chips of a slice of v5e; write '64 v5e' or '128 v5e'");
  EXPECT_EQ(refusal("512 v5e"),
            "cluster.from_text: '512 v5e' has 512 chips; expected the chips of a slice of v5e; write '256 v5e' or "
            "'2 x tpu v5e 16x16'");
  EXPECT_EQ(
      refusal("v4-511"),
      "cluster.from_text: 'v4-511' has 511 TensorCores; expected an even number, as a chip has two; write '192 v4' or '256 v4'");
  EXPECT_EQ(
      refusal("8x16 h100"),
      "cluster.from_text: '8x16 h100' has 16 GPUs in a node; expected 8 at most, as a node of h100 has; write '16x8 h100' or "
      "'h100 nodes=8 chips_per_node=16'");
  EXPECT_EQ(
      refusal("64 h100 nodes=4"),
      "cluster.from_text: '64 h100 nodes=4' has 64 GPUs on 4 nodes; expected 8 on each; write '32 x h100' or '64 x h100'");
  EXPECT_EQ(refusal("h100 nvl72"),
            "cluster.from_text: 'h100 nvl72' names an NVL72 of h100; expected gb200; write 'gb200 nvl72' or "
            "'72 x h100'");
  EXPECT_EQ(refusal("dgx mi300x"),
            "cluster.from_text: 'dgx mi300x' names a DGX of mi300x; expected a GPU that a DGX has; write 'dgx h100' or "
            "'8 x mi300x'");
}

TEST(ClusterText, EachTextThatAMessageNamesIsACluster) {
  for (const char* text : {"60 h100", "h100", "v5e-100", "512 v5e", "v4-511", "8x16 h100", "64 h100 nodes=4", "v5e",
                           "h100 nvl72", "dgx mi300x", "100 v5p", "1000000 v5p", "100 gb200", "100 7x", "8x8x8 h100"}) {
    const std::string message = refusal(text);
    std::vector<std::string> quoted;
    for (size_t at = message.find("; write '"); (at = message.find('\'', at)) != std::string::npos;) {
      const size_t end = message.find('\'', at + 1);
      quoted.push_back(message.substr(at + 1, end - at - 1));
      at = end + 1;
    }
    ASSERT_EQ(quoted.size(), 2) << message;
    for (const std::string& each : quoted) EXPECT_FALSE(name_of(each).empty()) << each;
  }
}

TEST(ClusterText, RefusesWhatItDoesNotKnow) {
  const std::string expected =
      "; expected a text such as '64 x h100', '8 x dgx h100', 'gb200 nvl72', 'v5e-256' or 'tpu v5e 16x16' with one of ";
  for (const char* text : {"", "8", "64 gpus", "dgx", "2 nodes x 4"}) {
    EXPECT_TRUE(refusal(text).starts_with("cluster.from_text: '" + std::string(text) + "' names no chip" + expected))
        << refusal(text);
  }
  EXPECT_TRUE(refusal("64 h900").starts_with(
      "cluster.from_text: '64 h900' names 'h900', which is not a chip of the catalogue" + expected + preset_names()));
  EXPECT_EQ(
      refusal("99999999999999999999 h100"),
      "cluster.from_text: '99999999999999999999 h100' has a number out of range; expected 1 to 16777216; correct it");
  EXPECT_EQ(
      refusal("dgx h100 nodes=two"),
      "cluster.from_text: 'dgx h100 nodes=two' has 'two' for nodes; expected a whole number; write it as in nodes=2");
  EXPECT_EQ(refusal("dgx h100 nodes=2 nodes=2"),
            "cluster.from_text: 'dgx h100 nodes=2 nodes=2' has nodes twice; expected it once; leave one out");
  EXPECT_EQ(
      refusal("8 x dgx h100 nodes=2"),
      "cluster.from_text: '8 x dgx h100 nodes=2' gives the number of nodes twice; expected it once; leave one out");
  EXPECT_EQ(
      refusal("16 h100 host_memory=nan"),
      "cluster.from_text: '16 h100 host_memory=nan' has 'nan' for host_memory; expected a number above 0; write it as in "
      "host_memory=5e10");
  EXPECT_EQ(
      refusal("v5e-256 nodes=2"),
      "cluster.from_text: 'v5e-256 nodes=2' has nodes=; expected slices=, host_memory= for this cluster; leave it out");
}

}  // namespace
}  // namespace artifex_devices
