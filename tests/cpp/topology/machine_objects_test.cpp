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

TEST(MachineObjects, ListParentsFirstAndMemoryBeforeOtherChildren) {
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

TEST(MachineObjects, HaveNodesAndPusWithoutATopology) {
  const auto objects = machine_objects(LoadedMachine(CpuSet{{2, 7}}, 1 << 20));
  EXPECT_EQ(types(objects), (std::vector<std::string>{"Machine", "  NUMANode", "  PU", "  PU"}));
  EXPECT_EQ(objects[0].cpus.to_string(), "2,7");
  EXPECT_EQ(objects[1].bytes, 1 << 20);
  EXPECT_EQ(objects[3].logical_index, 1);
  EXPECT_EQ(objects[3].os_index, 7);
}

TEST(LastLevelCache, IsTheThirdLevelOrElseTheSecond) {
  constexpr int64_t kMiB = int64_t{1} << 20;
  const auto three = Machine::from_synthetic("pack:2 l3:2(size=32MB) l2:4(size=1MB) core:1 pu:1");
  CpuSet first{{0, 1, 2, 3}};
  CpuSet half{{4, 5, 6, 7, 8}};  // of the second cache, and the beginning of the third
  const int64_t third_level = last_level_cache_bytes(*three, first);
  EXPECT_GE(third_level, 30 * kMiB);
  EXPECT_LE(third_level, 32 * kMiB);
  EXPECT_EQ(last_level_cache_bytes(*three, half), 2 * third_level);
  const auto two = Machine::from_synthetic("l2:4(size=1MB) core:2 pu:1");
  EXPECT_EQ(last_level_cache_bytes(*two, CpuSet{{0, 1, 2}}), 2 * last_level_cache_bytes(*two, CpuSet{{0}}));
  EXPECT_EQ(last_level_cache_bytes(*Machine::from_synthetic("core:2 pu:1"), first), 0);
}

}  // namespace
}  // namespace artifex_devices
