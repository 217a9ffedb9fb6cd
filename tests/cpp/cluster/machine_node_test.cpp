// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/cluster/machine_node.h"

#include <gtest/gtest.h>

#include "artifex_devices/base/error.h"

namespace artifex_devices {
namespace {

MachineChip chip(const char* catalogue_name, const char* name) {
  return {catalogue_name, name, "gpu", int64_t{16} << 30, 3.2e10, ""};
}

std::shared_ptr<const Machine> two_domains() { return Machine::from_synthetic("numa:2 core:2 pu:1"); }

TEST(MachineNode, CpuDomainsAreChipsJoinedByMemory) {
  const ClusterParts parts = cpu_node(*two_domains(), "here");
  EXPECT_EQ(parts.inside.dims, std::vector<int>{2});
  EXPECT_EQ(parts.chip.platform, "cpu");
  EXPECT_EQ(parts.inside.link_kind, "memory");
  EXPECT_EQ(parts.chip.memory_bytes->source, "here");
}

TEST(MachineNode, AFullDomainOfTheCatalogueHasItsLinks) {
  const std::vector<MachineChip> chips(8, chip("NVIDIA H100 SXM", "H100"));
  EXPECT_EQ(accelerator_node(chips, *two_domains(), "file").inside.bandwidth->value, 4.5e11);
}

TEST(MachineNode, OthersAreJoinedByPciExpress) {
  for (const char* name : {"NVIDIA H100 SXM", ""}) {
    const std::vector<MachineChip> chips(3, chip(name, "card"));
    ClusterParts parts = accelerator_node(chips, *two_domains(), "file");
    parts.name = "node";
    EXPECT_EQ(parts.inside.link_kind, "PCI Express");
    EXPECT_EQ(parts.inside.bandwidth->value, 3.2e10);
    EXPECT_EQ(parts.notes.back(), kJoinedByPci);
    EXPECT_EQ(parts.host_shape, std::vector<int>{3});
    EXPECT_TRUE(Cluster::make(parts));
  }
}

TEST(MachineNode, SeveralKindsAreRefused) {
  try {
    accelerator_node({chip("", "a"), chip("", "b")}, *two_domains(), "file");
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_PRED_FORMAT2(testing::IsSubstring, "accelerators of several kinds, a, b; expected one kind", error.what());
  }
}

}  // namespace
}  // namespace artifex_devices
