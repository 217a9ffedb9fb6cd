// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/cluster/capabilities.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "artifex_devices/base/error.h"

namespace artifex_devices {
namespace {

using Texts = std::vector<std::string>;

std::shared_ptr<const Machine> machine() {
  return Machine::from_xml(ARTIFEX_TEST_DATA "/machines/two_nodes_accelerators.xml");
}

Capabilities find(const std::string& settings, std::shared_ptr<const Machine> of) {
  setenv("NVML_STAND_IN", settings.c_str(), 1);
  Capabilities found = find_capabilities({.machine = std::move(of), .nvml_library = ARTIFEX_NVML_STAND_IN});
  unsetenv("NVML_STAND_IN");
  return found;
}

TEST(Capabilities, UseThePciBusWithoutADriver) {
  const Capabilities found = find_capabilities({.machine = machine()});
  EXPECT_EQ(found.problems, Texts{});
  EXPECT_EQ(found.driver_version, "");
  ASSERT_EQ(found.accelerators.size(), 4u);
  EXPECT_EQ(found.accelerators[0].hardware_type, HardwareType::kA100);
  EXPECT_EQ(found.accelerators[1].hardware_type, HardwareType::kV100);
  EXPECT_EQ(found.accelerators[2].hardware_type, HardwareType::kTpuV5e);
  EXPECT_EQ(found.accelerators[3].hardware_type, HardwareType::kUnknown);
  EXPECT_EQ(found.accelerators[2].catalogue_name, "TPU v5e");
  EXPECT_EQ(found.accelerators[3].catalogue_name, "");
  for (const FoundAccelerator& each : found.accelerators) {
    EXPECT_EQ(each.sources, Texts{"hwloc"});
    EXPECT_EQ(each.nvml_index, std::nullopt);
  }
}

TEST(Capabilities, MatchGpusOfBusAndDriverByAddress) {
  const Capabilities found = find(
      "driver=550.54.15;cuda=12040;gpu=Tesla V100-SXM2-32GB|34089730048|7.0|0:6:0|1db510de|npu@4:0:0;"
      "gpu=NVIDIA A100-SXM4-80GB|N/A|8.0|0:4:0|20b210de;gpu=NVIDIA H100 PCIe|85520809984|9.0|0:44:0|233110de",
      machine());
  EXPECT_EQ(found.driver_version, "550.54.15");
  EXPECT_EQ(found.cuda_version, "12.4");
  EXPECT_EQ(found.problems, Texts{});
  ASSERT_EQ(found.accelerators.size(), 5u);
  const FoundAccelerator& a100 = found.accelerators[0];
  EXPECT_EQ(a100.nvml_index, 1);
  EXPECT_EQ(a100.facts.memory_bytes, 83886080LL * 1024);  // hwloc's, for the driver does not say
  EXPECT_EQ(a100.facts.numa_os_indexes, std::vector<int>{0});
  EXPECT_EQ(a100.compute_capability, (ComputeCapability{8, 0}));
  EXPECT_EQ(a100.sources, (Texts{"hwloc", ARTIFEX_NVML_STAND_IN}));
  EXPECT_EQ(a100.problems, Texts{"nvmlDeviceGetMemoryInfo: not supported (NVML error 3)"});
  const FoundAccelerator& v100 = found.accelerators[1];
  EXPECT_EQ(v100.nvml_index, 0);
  EXPECT_EQ(v100.facts.name, "Tesla V100-SXM2-32GB");
  EXPECT_EQ(v100.facts.memory_bytes, 34089730048);
  EXPECT_EQ(v100.links, (std::vector<NvLink>{{0, true, "npu", "0004:00:00.0"}}));
  EXPECT_EQ(found.accelerators[2].nvml_index, std::nullopt);
  const FoundAccelerator& hidden = found.accelerators[4];
  EXPECT_EQ(hidden.nvml_index, 2);
  EXPECT_EQ(hidden.hardware_type, HardwareType::kH100);
  EXPECT_EQ(hidden.facts.pci_address, "0000:44:00.0");
  EXPECT_EQ(hidden.facts.device_id, 0x2331);
  EXPECT_EQ(hidden.sources, Texts{ARTIFEX_NVML_STAND_IN});
  EXPECT_EQ(hidden.problems, Texts{"0000:44:00.0 is not among the PCI devices: its NUMA node is not known"});
}

TEST(Capabilities, KeepTwoGpusOfOneAddressSeparate) {
  const Capabilities found = find("gpu=A|1024|8.0|0:4:0|0;gpu=B|1024|8.0|0:4:0|0;gpu=C|1024|8.0|0:fff:0|0", machine());
  ASSERT_EQ(found.accelerators.size(), 6u);
  EXPECT_EQ(found.accelerators[0].facts.name, "A");
  EXPECT_EQ(found.accelerators[4].facts.name, "B");
  EXPECT_EQ(found.accelerators[5].facts.name, "C");
}

TEST(Capabilities, NameTheSourceOfEachReason) {
  const Capabilities found = find_capabilities({.sysfs_root = "/nowhere", .nvml_library = "/nowhere/x.so"});
  EXPECT_TRUE(found.accelerators.empty());
  ASSERT_EQ(found.problems.size(), 2u);
  EXPECT_EQ(found.problems[0],
            "/nowhere/sys/bus/pci/devices: /nowhere/sys/bus/pci/devices cannot be read (No such file or directory)");
  EXPECT_TRUE(found.problems[1].starts_with("/nowhere/x.so: cannot be loaded: ")) << found.problems[1];
  EXPECT_THROW(find_capabilities({.sysfs_root = "/nowhere", .nvml_library = "x.so"}), InvalidArgument);
}

}  // namespace
}  // namespace artifex_devices
