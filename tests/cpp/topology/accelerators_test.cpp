// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/topology/accelerators.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>

namespace artifex_devices {
namespace {

namespace fs = std::filesystem;
using Texts = std::vector<std::string>;

std::vector<std::string> addresses(const PciAccelerators& accelerators) {
  std::vector<std::string> found;
  for (const PciAccelerator& each : accelerators.found) found.push_back(each.pci_address);
  return found;
}

TEST(Accelerators, AreReadFromXml) {
  const auto machine = Machine::from_xml(ARTIFEX_TEST_DATA "/machines/two_nodes_accelerators.xml");
  const PciAccelerators accelerators = accelerators_of(*machine);
  EXPECT_EQ(accelerators.source, "hwloc");
  EXPECT_EQ(accelerators.problems, Texts{});
  // Neither the screen 0000:05:00.0, though Linux calls it a GPU, nor Google's network card 0001:82:00.0.
  ASSERT_EQ(addresses(accelerators), (Texts{"0000:04:00.0", "0000:06:00.0", "0001:81:00.0", "0001:83:00.0"}));
  const PciAccelerator a100{.kind = AcceleratorKind::kGpu,
                            .pci_address = "0000:04:00.0",
                            .vendor_id = 0x10de,
                            .device_id = 0x20b2,
                            .name = "NVIDIA A100-SXM4-80GB",
                            .memory_bytes = 83886080LL * 1024,
                            .link_bytes_per_s = 31.5e9,
                            .numa_os_indexes = {0},
                            .os_devices = {"opencl0d0", "cuda0", "nvml0"},
                            .backends = {"OpenCL", "CUDA", "NVML"}};
  EXPECT_EQ(accelerators.found[0], a100);
  const PciAccelerator unbound{.kind = AcceleratorKind::kGpu,  // its memory is nonsense there
                               .pci_address = "0000:06:00.0",
                               .vendor_id = 0x10de,
                               .device_id = 0x1db5,
                               .name = "GV100GL [Tesla V100 SXM2 32GB]",
                               .memory_bytes = std::nullopt,
                               .link_bytes_per_s = std::nullopt,
                               .numa_os_indexes = {0},
                               .os_devices = {"card1"},
                               .backends = {}};
  EXPECT_EQ(accelerators.found[1], unbound);
  EXPECT_EQ(accelerators.found[2].kind, AcceleratorKind::kTpu);
  EXPECT_EQ(accelerators.found[2].name, "TPU v5e");
  EXPECT_EQ(accelerators.found[2].numa_os_indexes, std::vector<int>{3});
  EXPECT_EQ(accelerators.found[3].name, "AMD Instinct MI250X");
  EXPECT_EQ(accelerators.found[3].memory_bytes, 67092480LL * 1024);
  EXPECT_EQ(accelerators.found[3].backends, Texts{"RSMI"});
}

TEST(Accelerators, AreAbsentFromSyntheticMachines) {
  EXPECT_TRUE(accelerators_of(*Machine::from_synthetic("numa:2 pu:2")).found.empty());
}

TEST(Accelerators, AreFoundOnTheBusOfTheLiveMachine) {
  const PciAccelerators accelerators = accelerators_of(*Machine::live());
  std::set<std::string> seen;
  for (const PciAccelerator& each : accelerators.found) {
    EXPECT_TRUE(seen.insert(each.pci_address).second) << each.pci_address;
    EXPECT_TRUE(fs::exists("/sys/bus/pci/devices/" + each.pci_address)) << each.pci_address;
  }
  EXPECT_EQ(Machine::live()->counts().pci_devices, 0);  // the ordinary load has no devices
  // The same by sysfs alone.
  Texts by_hwloc = addresses(accelerators), by_sysfs = addresses(accelerators_in_sysfs(""));
  std::ranges::sort(by_hwloc);
  EXPECT_EQ(by_hwloc, by_sysfs);
}

/// A machine's files.
class Sysfs : public ::testing::Test {
 protected:
  Sysfs() { fs::remove_all(root_); }
  ~Sysfs() override { fs::remove_all(root_); }

  void put(const std::string& path, const std::string& text) const {
    fs::create_directories(fs::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text << '\n';
  }
  void pci(const std::string& address, const std::string& vendor, const std::string& device, const std::string& kind,
           const std::string& node) const {
    const std::string folder = "/sys/bus/pci/devices/" + address;
    put(folder + "/vendor", vendor);
    put(folder + "/device", device);
    put(folder + "/class", kind);
    put(folder + "/numa_node", node);
  }

  const std::string root_ =
      ::testing::TempDir() + "accelerators_" + ::testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(Sysfs, FindsTpusByTheirIds) {
  const std::map<std::string, std::string> names = {
      {"0x0027", "TPU v2 or v3"}, {"0x0056", "TPU 0056"}, {"0x005e", "TPU v4"}, {"0x0062", "TPU v5p"},
      {"0x0063", "TPU v5e"},      {"0x006f", "TPU v6e"},  {"0x0076", "TPU7x"},  {"0x007c", "TPU8t"},
      {"0x0083", "TPU8i"},        {"0x001f", ""},         {"0x0042", ""},
  };
  int bus = 0;
  for (const auto& [id, name] : names) {
    pci("0000:0" + std::to_string(bus % 10) + ":0" + std::to_string(bus / 10) + ".0", "0x1ae0", id, "0xff0000", "1");
    ++bus;
  }
  const PciAccelerators found = accelerators_in_sysfs(root_);
  std::map<std::string, int> counts;
  for (const PciAccelerator& each : found.found) {
    EXPECT_EQ(each.kind, AcceleratorKind::kTpu);
    EXPECT_EQ(each.numa_os_indexes, std::vector<int>{1});
    EXPECT_EQ(each.memory_bytes, std::nullopt);
    EXPECT_EQ(++counts[each.name], 1);
  }
  for (const auto& [id, name] : names) EXPECT_EQ(counts[name], name.empty() ? 0 : 1) << id;
  EXPECT_EQ(found.found.size(), 9u);
  EXPECT_EQ(found.problems, Texts{});
  EXPECT_EQ(found.source, root_ + "/sys/bus/pci/devices");
}

TEST_F(Sysfs, FindsGpusByVendorAndClass) {
  pci("0000:01:00.0", "0x10de", "0x2330", "0x030200", "0");
  pci("0000:02:00.0", "0x10de", "0x1af1", "0x068000", "0");  // NVSwitch
  pci("0000:03:00.0", "0x1002", "0x740c", "0x038000", "-1");
  pci("0000:04:00.0", "0x1002", "0x515e", "0x030000", "0");  // a server's screen
  pci("0000:05:00.0", "0x102b", "0x0522", "0x030000", "0");  // another one's
  pci("0000:06:00.0", "0x10de", "0x9999", "0x030000", "0");
  const PciAccelerators found = accelerators_in_sysfs(root_);
  ASSERT_EQ(addresses(found), (Texts{"0000:01:00.0", "0000:03:00.0", "0000:06:00.0"}));
  EXPECT_EQ(found.found[0].name, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(found.found[0].numa_os_indexes, std::vector<int>{0});
  EXPECT_EQ(found.found[1].name, "AMD Instinct MI250X");
  EXPECT_EQ(found.found[1].numa_os_indexes, std::vector<int>{});
  EXPECT_EQ(found.found[2].name, "");
}

TEST_F(Sysfs, FindsGpusOfTheKfdDriver) {
  pci("0000:c1:00.0", "0x1002", "0x74a0", "0x120000", "1");
  pci("0000:c6:00.0", "0x1002", "0x66a1", "0x030000", "1");
  const std::string nodes = "/sys/class/kfd/kfd/topology/nodes";
  put(nodes + "/0/properties", "cpu_cores_count 64\nsimd_count 0\ndomain 0\nlocation_id 0");
  put(nodes + "/1/properties", "simd_count 1216\ngfx_target_version 90402\ndomain 0\nlocation_id 49408");
  put(nodes + "/1/mem_banks/0/properties", "heap_type 1\nsize_in_bytes 206141652992\nflags 0");
  put(nodes + "/1/mem_banks/1/properties", "heap_type 5\nsize_in_bytes 4096");
  put(nodes + "/2/properties", "simd_count 240\ngfx_target_version 90006\ndomain 0\nlocation_id 50688\nbad\n x");
  const PciAccelerators found = accelerators_in_sysfs(root_);
  ASSERT_EQ(addresses(found), (Texts{"0000:c1:00.0", "0000:c6:00.0"}));
  EXPECT_EQ(found.found[0].name, "gfx942");
  EXPECT_EQ(found.found[0].memory_bytes, 206141652992);
  EXPECT_EQ(found.found[1].name, "AMD Instinct MI50");
  EXPECT_EQ(found.found[1].memory_bytes, std::nullopt);
}

TEST_F(Sysfs, ReportsUnreadableFiles) {
  EXPECT_EQ(accelerators_in_sysfs(root_).problems,
            Texts{root_ + "/sys/bus/pci/devices cannot be read (No such file or directory)"});
  pci("0000:01:00.0", "nonsense", "0x2330", "0x030200", "x");
  pci("0000:02:00.0", "0x10de", "0x12330", "0x030200", "0");
  pci("0000:03:00.0", "0x10de", "0x2330", "0x030200", "99999999999999");
  put("/sys/bus/pci/devices/0000:04:00.0/vendor", "0x10de");
  const PciAccelerators found = accelerators_in_sysfs(root_);
  ASSERT_EQ(addresses(found), Texts{"0000:03:00.0"});
  EXPECT_EQ(found.found[0].numa_os_indexes, std::vector<int>{});
  const std::string folder = root_ + "/sys/bus/pci/devices/";
  EXPECT_EQ(found.problems, (Texts{folder + "0000:01:00.0 has no readable vendor, device and class",
                                   folder + "0000:02:00.0 has no readable vendor, device and class",
                                   folder + "0000:04:00.0 has no readable vendor, device and class"}));
}

TEST(Accelerators, AreNamedByPciIds) {
  EXPECT_EQ(pci_accelerator_name(0x1ae0, 0x0063), "TPU v5e");
  EXPECT_EQ(pci_accelerator_name(0x10de, 0x1db1), "Tesla V100-SXM2-16GB");
  EXPECT_EQ(pci_accelerator_name(0x10de, 0x20f1), "NVIDIA A100-PCIE-40GB");
  EXPECT_EQ(pci_accelerator_name(0x1002, 0x740f), "AMD Instinct MI210");
  EXPECT_EQ(pci_accelerator_name(0x10de, 0x20f3), "NVIDIA A800-SXM4-80GB");
  EXPECT_EQ(pci_accelerator_name(0x10de, 0x2324), "NVIDIA H800");
  EXPECT_EQ(pci_accelerator_name(0x10de, 0x2335), "NVIDIA H200");
  EXPECT_EQ(pci_accelerator_name(0x10de, 0x2901), "NVIDIA B200");
  EXPECT_EQ(pci_accelerator_name(0x10de, 0x2941), "NVIDIA GB200");
  EXPECT_EQ(pci_accelerator_name(0x1002, 0x74a1), "AMD Instinct MI300X");
  EXPECT_EQ(pci_accelerator_name(0x1002, 0x0063), "");
}

/// How all accelerators of a recorded machine are joined.
std::optional<AcceleratorLinks> links_of(const std::string& name) {
  const auto machine = Machine::from_xml(ARTIFEX_SHARED_DATA "/topologies/" + name);
  return accelerator_links(*machine, addresses(accelerators_of(*machine)));
}

TEST(Accelerators, HaveTheLinksOfTheMatricesOfHwloc) {
  if (!fs::exists(ARTIFEX_SHARED_DATA "/topologies/expected.json")) {
    GTEST_SKIP() << "the recorded machines are not beside this checkout";
  }
  const auto dgx2 = links_of("dgx2-16xV100.xml");  // six links of 25,000 MB/s from each GPU into switches
  ASSERT_TRUE(dgx2);
  EXPECT_EQ(dgx2->kind, "NVLink");
  EXPECT_TRUE(dgx2->is_switched);
  EXPECT_DOUBLE_EQ(dgx2->bandwidth, 6 * 25e9);
  const auto mi250 = links_of("epyc-1s-nps4-8xMI250X.xml");
  ASSERT_TRUE(mi250);
  EXPECT_EQ(mi250->kind, "xGMI");
  EXPECT_FALSE(mi250->is_switched);
  EXPECT_DOUBLE_EQ(mi250->bandwidth, 100e9);
  EXPECT_FALSE(links_of("power9-2s-4xV100.xml"));  // no matrix
  EXPECT_FALSE(links_of("xeon-1s-4c8t.xml"));      // no accelerators
}

}  // namespace
}  // namespace artifex_devices
