// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/topology/world_text.h"

#include <gtest/gtest.h>

#include "artifex_devices/base/error.h"
#include "artifex_devices/topology/machine.h"

namespace artifex_devices {
namespace {

TEST(WorldText, ReadsANumberAsDevicesOnTheLiveMachine) {
  for (const std::string text : {"8", " 8 ", "8\n"}) {
    const WorldText world = parse_world(text);
    EXPECT_EQ(world.num_devices, 8);
    EXPECT_EQ(world.synthetic, "");
    EXPECT_EQ(world.xml_path, "");
  }
}

TEST(WorldText, ReadsNodesTimesDevicesAsASyntheticMachine) {
  for (const std::string text : {"2 nodes x 4", "2 nodes x 4 devices", " 2 nodes  x  4 ", "2 nodes * 4", "2nodes x4"}) {
    const WorldText world = parse_world(text);
    EXPECT_EQ(world.num_devices, 8) << text;
    EXPECT_EQ(world.synthetic, "numa:2 core:4 pu:1") << text;
    EXPECT_EQ(Machine::from_synthetic(world.synthetic)->cpu_domains().size(), 2u);
  }
  EXPECT_EQ(parse_world("1 node x 1").synthetic, "numa:1 core:1 pu:1");
}

TEST(WorldText, ReadsGpusByTheirName) {
  for (const std::string text : {"4 x h100 80gb", "4x h100 80gb", " 4 X  h100 80gb\n"}) {
    const WorldText world = parse_world(text);
    EXPECT_EQ(world.num_devices, 4) << text;
    EXPECT_EQ(world.device_kind, "h100 80gb") << text;
    EXPECT_EQ(world.synthetic, "") << text;
  }
}

TEST(WorldText, KeepsTheSyntheticMachineOfLargeWorldsSmall) {
  const WorldText world = parse_world("64 nodes x 1024");
  EXPECT_EQ(world.num_devices, 65536);
  EXPECT_EQ(Machine::from_synthetic(world.synthetic)->cpu_domains().size(), 64u);
}

TEST(WorldText, ReturnsOtherTextsUnchanged) {
  EXPECT_EQ(parse_world("pack:2 numa:2 core:4 pu:2").synthetic, "pack:2 numa:2 core:4 pu:2");
  EXPECT_EQ(parse_world("2 4").synthetic, "2 4");  // hwloc's form without types
  EXPECT_EQ(parse_world("machines/big one.xml").xml_path, "machines/big one.xml");
  EXPECT_FALSE(parse_world("machines/big one.xml").num_devices);
}

TEST(WorldText, RefusesEmptyAndImpossibleWorlds) {
  for (const std::string text : {"", "  ", "0", "99999999999999999999", "0 nodes x 4", "2 nodes x 0", "2 nodes x",
                                 "2 nodes", "2 nodes x 4 cats", "2 nodes y 4", "100000 nodes x 1",
                                 "2 nodes x 9223372036854775807", "0 x h100", "99999999999999999999 x h100"}) {
    EXPECT_THROW(parse_world(text), InvalidArgument) << text;
  }
}

TEST(WorldText, NamesTheCallForTextsOfDevices) {
  const std::pair<std::string, std::string> rows[] = {
      {"8 gpus", "write simulate(8, platform=\"gpu\");"},
      {"GPU:4", "write simulate(4, platform=\"gpu\");"},
      {"8 cpus", "write simulate(8);"},
      {"8 devices", "write simulate(8);"},
      {"4 h100", "write simulate(\"4 x h100\") for GPUs of the catalogue;"},
      {"4 x 8", "write simulate(\"4 nodes x 8\");"},
      {"spam", "write simulate(8);"},
  };
  for (const auto& [text, repair] : rows) {
    try {
      parse_world(text);
      ADD_FAILURE() << text;
    } catch (const InvalidArgument& error) {
      EXPECT_NE(std::string(error.what()).find(repair), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace artifex_devices
