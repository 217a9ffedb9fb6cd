// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/topology/machine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "artifex_devices/base/error.h"
#include "artifex_devices/topology/binding.h"

namespace artifex_devices {
namespace {

const std::string kKnlLike = "pack:2 [numa(memory=4GB)] [numa(memory=1GB)] core:4 pu:2";

std::string synthetic_error(const std::string& synthetic) {
  try {
    Machine::from_synthetic(synthetic);
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "(accepted)";
}

TEST(CpuSet, PrintsRangesAsHwlocDoes) {
  EXPECT_EQ(CpuSet{}.to_string(), "");
  EXPECT_EQ((CpuSet{{3}}).to_string(), "3");
  EXPECT_EQ((CpuSet{{0, 1, 2, 3, 8}}).to_string(), "0-3,8");
  EXPECT_EQ((CpuSet{{0, 2, 4, 5}}).to_string(), "0,2,4-5");
}

TEST(Synthetic, CountsObjectsOfEachType) {
  const auto machine = Machine::from_synthetic("pack:2 numa:2 l3:1 core:4 pu:2");
  EXPECT_FALSE(machine->is_live());
  EXPECT_EQ(machine->source(), "pack:2 numa:2 l3:1 core:4 pu:2");
  EXPECT_EQ(machine->counts().packages, 2);
  EXPECT_EQ(machine->counts().numa_nodes, 4);
  EXPECT_EQ(machine->counts().l3_caches, 4);
  EXPECT_EQ(machine->counts().cores, 16);
  EXPECT_EQ(machine->counts().pus, 32);
  EXPECT_EQ(machine->counts().pci_devices, 0);
  EXPECT_EQ(machine->usable_cpus(), 32);
  EXPECT_EQ(machine->usable_memory_bytes(), int64_t{4} << 30);
}

TEST(Synthetic, CreatesADomainForEachNumaNode) {
  const auto machine = Machine::from_synthetic("numa:2 core:2 pu:2");
  const auto& domains = machine->cpu_domains();
  ASSERT_EQ(domains.size(), 2u);
  EXPECT_EQ(domains[0].cpus.to_string(), "0-3");
  EXPECT_EQ(domains[1].cpus.to_string(), "4-7");
  EXPECT_EQ(domains[0].nodes, std::vector<int>{0});
  EXPECT_EQ(domains[1].nodes, std::vector<int>{1});
  EXPECT_EQ(domains[1].default_node, 1);
  EXPECT_EQ(domains[0].cores, 2);
  EXPECT_TRUE(domains[0].wider_nodes.empty());
}

TEST(Synthetic, JoinsTwoMemoriesOfAPackageWithTheLargerAsDefault) {
  const auto machine = Machine::from_synthetic("pack:2 [numa(memory=1GB)] [numa(memory=4GB)] core:4 pu:2");
  const auto& domains = machine->cpu_domains();
  ASSERT_EQ(domains.size(), 2u);
  EXPECT_EQ(domains[0].nodes, (std::vector<int>{0, 1}));
  EXPECT_EQ(domains[0].default_node, 1);
  EXPECT_EQ(domains[1].nodes, (std::vector<int>{2, 3}));
  EXPECT_EQ(domains[1].default_node, 3);
  EXPECT_EQ(domains[1].cores, 4);
  EXPECT_EQ(machine->numa_nodes()[1].memory_bytes, 4'000'000'000);
}

TEST(Synthetic, CreatesNoDomainForAWiderNode) {
  const auto machine = Machine::from_synthetic("[numa(memory=64GB)] pack:2 [numa(memory=8GB)] core:2 pu:1");
  const auto& domains = machine->cpu_domains();
  ASSERT_EQ(domains.size(), 2u);
  ASSERT_EQ(domains[0].wider_nodes.size(), 1u);
  EXPECT_EQ(domains[0].wider_nodes, domains[1].wider_nodes);
  EXPECT_EQ(machine->numa_nodes()[static_cast<size_t>(domains[0].wider_nodes[0])].memory_bytes, 64'000'000'000);
  EXPECT_NE(domains[0].default_node, domains[0].wider_nodes[0]);
}

TEST(Synthetic, QuotesMalformedTextAndShowsAnExample) {
  for (const std::string text :
       {"", "   ", "pack", "pack:", "pack:x", "pack:-1", "pack:0 pu:2", "pack:2 numa:2(memory=1GB pu:2", "[numa",
        "foo:2 pu:2", "pu:2 core:4", "numa:2 pu:+3", "pu:1.5", "pack:2 \x01", "pu:2)"}) {
    const std::string message = synthetic_error(text);
    EXPECT_NE(message.find("from_synthetic"), std::string::npos) << text << " -> " << message;
    EXPECT_NE(message.find("pack:2 numa:2 core:4 pu:2"), std::string::npos) << text << " -> " << message;
  }
  EXPECT_NE(synthetic_error("pack:x").find("\"pack:x\""), std::string::npos);
}

TEST(Synthetic, RefusesTextThatCrashesHwloc) {
  EXPECT_NE(synthetic_error("memcache:1 pu:2").find("has a type that cannot be a level"), std::string::npos);
  EXPECT_NE(synthetic_error("pack:1 [l3] pu:2").find("only numa may be in brackets"), std::string::npos);
  EXPECT_NE(synthetic_error("pu:2(indexes=0,4294967295)").find("an index of more than 65535"), std::string::npos);
  EXPECT_NE(synthetic_error("pu:2(indexes=99999999999999999999)").find("an index of more than 65535"),
            std::string::npos);
  EXPECT_EQ(Machine::from_synthetic("pu:4(indexes=3,2,1,0)")->counts().pus, 4);
  EXPECT_EQ(Machine::from_synthetic("Package:2 L3:1 NUMANode:1(memory=1GB) Core:2 PU:1")->counts().l3_caches, 2);
}

TEST(Synthetic, RefusesSizesThatAreTooSlowForHwloc) {
  EXPECT_NE(synthetic_error("pu:4097").find("4096"), std::string::npos);
  EXPECT_NE(synthetic_error("node:4000000000 pu:4000000000").find("4096"), std::string::npos);
  EXPECT_NE(synthetic_error("pack:99999999999999999999 pu:2").find("4096"), std::string::npos);
  EXPECT_NE(synthetic_error("pack:64 core:64 pu:2").find("4096"), std::string::npos);
  std::string memories = "pack:2048 ";
  for (int i = 0; i < 3; ++i) memories += "[numa] ";
  EXPECT_NE(synthetic_error(memories + "pu:1").find("memories"), std::string::npos);
  std::string levels;
  for (int i = 0; i < 101; ++i) levels += "group:1 ";
  EXPECT_NE(synthetic_error(levels + "pu:1").find("levels"), std::string::npos);
  EXPECT_LT(synthetic_error(std::string(100'000, 'x')).size(), 600u);
}

TEST(Synthetic, ReportsThatBindingHasNoEffect) {
  const auto machine = Machine::from_synthetic("numa:2 pu:2");
  alignas(4096) static std::byte page[4096];
  EXPECT_FALSE(bind_this_thread(*machine, machine->cpu_domains()[0].cpus));
  EXPECT_FALSE(bind_memory(*machine, 0, page, sizeof(page)));
}

TEST(XmlRoundTrip, PreservesExportedMachines) {
  for (const std::string text :
       {"numa:2 core:2 pu:2", kKnlLike.c_str(), "[numa(memory=2GB)] pack:2 [numa] l2:2 pu:2"}) {
    const auto first = Machine::from_synthetic(text);
    const auto second = Machine::from_xml_text(first->to_xml());
    EXPECT_FALSE(second->is_live());
    ASSERT_EQ(second->numa_nodes().size(), first->numa_nodes().size());
    for (size_t i = 0; i < first->numa_nodes().size(); ++i) {
      EXPECT_EQ(second->numa_nodes()[i].cpus, first->numa_nodes()[i].cpus);
      EXPECT_EQ(second->numa_nodes()[i].memory_bytes, first->numa_nodes()[i].memory_bytes);
      EXPECT_EQ(second->numa_nodes()[i].os_index, first->numa_nodes()[i].os_index);
    }
    ASSERT_EQ(second->cpu_domains().size(), first->cpu_domains().size());
    for (size_t i = 0; i < first->cpu_domains().size(); ++i) {
      EXPECT_EQ(second->cpu_domains()[i].cpus, first->cpu_domains()[i].cpus);
      EXPECT_EQ(second->cpu_domains()[i].default_node, first->cpu_domains()[i].default_node);
    }
    EXPECT_EQ(second->counts().pus, first->counts().pus);
  }
}

TEST(XmlFile, ReadsBothFormats) {
  const std::string folder = ARTIFEX_TEST_DATA "/machines/";
  const auto two = Machine::from_xml(folder + "two_packages_two_memories.xml");
  EXPECT_EQ(two->source(), folder + "two_packages_two_memories.xml");
  EXPECT_EQ(two->counts().numa_nodes, 4);
  ASSERT_EQ(two->cpu_domains().size(), 2u);
  EXPECT_EQ(two->cpu_domains()[1].cpus.to_string(), "8-15");
  EXPECT_EQ(two->usable_memory_bytes(), 10'000'000'000);

  const auto old = Machine::from_xml(folder + "two_nodes_format1.xml");
  EXPECT_EQ(old->counts().cores, 4);
  EXPECT_EQ(old->counts().l3_caches, 2);
  ASSERT_EQ(old->cpu_domains().size(), 2u);
  EXPECT_EQ(old->cpu_domains()[0].cpus.to_string(), "0-3");
  EXPECT_EQ(old->numa_nodes()[0].memory_bytes, 8'000'000'000);
}

TEST(XmlFile, LoadsEveryRecordedMachineWithDisjointDomains) {
  const std::filesystem::path folder = ARTIFEX_SHARED_DATA "/topologies";
  if (!std::filesystem::is_directory(folder)) GTEST_SKIP() << "no folder of recorded machines beside this checkout";
  int machines = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".xml") continue;
    SCOPED_TRACE(entry.path().filename().string());
    const auto machine = Machine::from_xml(entry.path().string());
    ++machines;
    EXPECT_GT(machine->counts().pus, 0);
    EXPECT_EQ(machine->counts().numa_nodes, static_cast<int>(machine->numa_nodes().size()));
    std::vector<int> seen;
    for (const CpuDomain& domain : machine->cpu_domains()) {
      EXPECT_FALSE(domain.cpus.cpus.empty());
      EXPECT_GE(domain.cores, 1);
      EXPECT_NE(std::ranges::find(domain.nodes, domain.default_node), domain.nodes.end());
      seen.insert(seen.end(), domain.cpus.cpus.begin(), domain.cpus.cpus.end());
    }
    std::ranges::sort(seen);
    EXPECT_EQ(std::ranges::adjacent_find(seen), seen.end());
    EXPECT_FALSE(bind_this_thread(*machine, machine->cpu_domains()[0].cpus));
  }
  EXPECT_GE(machines, 18);
}

}  // namespace
}  // namespace artifex_devices
