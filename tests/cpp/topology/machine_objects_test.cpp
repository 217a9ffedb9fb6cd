// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/topology/machine_objects.h"

#include <gtest/gtest.h>

#include "artifex_devices/topology/loaded_machine.h"

namespace artifex_devices {
namespace {

std::vector<std::string> types(const std::vector<MachineObject>& objects) {
  std::vector<std::string> found;
  for (const MachineObject& object : objects)
    found.push_back(std::string(2 * static_cast<size_t>(object.depth), ' ') + object.type);
  return found;
}

TEST(MachineObjectsTest, ParentsStandBeforeTheirChildrenAndMemoryFirst) {
  const auto objects = machine_objects(*Machine::from_synthetic("pack:2 numa:1 l2:1(size=1MB) core:1 pu:2"));
  EXPECT_EQ(types(objects),
            (std::vector<std::string>{"Machine", "  Package", "    NUMANode", "    L2Cache", "      Core", "        PU",
                                      "        PU", "  Package", "    NUMANode", "    L2Cache", "      Core",
                                      "        PU", "        PU"}));
  EXPECT_EQ(objects[2].bytes, int64_t{1} << 30);
  EXPECT_EQ(objects[3].bytes, 1000000);
  EXPECT_EQ(objects[7].cpus.to_string(), "2-3");
  EXPECT_EQ(objects[12].os_index, 3);
}

TEST(MachineObjectsTest, WithoutATopologyThereAreNodesAndPus) {
  const auto objects = machine_objects(LoadedMachine(CpuSet{{2, 7}}, 1 << 20));
  EXPECT_EQ(types(objects), (std::vector<std::string>{"Machine", "  NUMANode", "  PU", "  PU"}));
  EXPECT_EQ(objects[0].cpus.to_string(), "2,7");
  EXPECT_EQ(objects[1].bytes, 1 << 20);
  EXPECT_EQ(objects[3].logical_index, 1);
  EXPECT_EQ(objects[3].os_index, 7);
}

}  // namespace
}  // namespace artifex_devices
