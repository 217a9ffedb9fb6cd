// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/topology/cpu_share.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "artifex_devices/base/error.h"
#include "artifex_devices/topology/loaded_machine.h"

namespace artifex_devices {
namespace {

std::string shares_of(const std::string& machine, int parts) {
  std::string text;
  for (const CpuSet& share : share_cpus(*Machine::from_synthetic(machine), parts)) {
    text += (text.empty() ? "" : " | ") + share.to_string();
  }
  return text;
}

TEST(CpuShare, GivesASinglePartAllCpus) { EXPECT_EQ(shares_of("numa:2 core:2 pu:2", 1), "0-7"); }

TEST(CpuShare, GivesFewPartsWholeDomains) {
  EXPECT_EQ(shares_of("numa:2 core:2 pu:2", 2), "0-3 | 4-7");
  EXPECT_EQ(shares_of("numa:4 core:2 pu:1", 2), "0-3 | 4-7");
  EXPECT_EQ(shares_of("numa:4 core:2 pu:1", 3), "0-1 | 2-3 | 4-7");
}

TEST(CpuShare, SplitsCoresBetweenMorePartsThanDomains) {
  EXPECT_EQ(shares_of("numa:2 core:2 pu:1", 3), "0 | 1 | 2-3");
  EXPECT_EQ(shares_of("numa:2 core:4 pu:2", 4), "0-3 | 4-7 | 8-11 | 12-15");
  EXPECT_EQ(shares_of("numa:1 core:5 pu:1", 2), "0-1 | 2-4");
}

TEST(CpuShare, KeepsHyperthreadsTogetherAndSharesCoresBetweenManyParts) {
  EXPECT_EQ(shares_of("numa:1 core:2 pu:2", 2), "0-1 | 2-3");
  EXPECT_EQ(shares_of("numa:1 core:2 pu:2", 4), "0-1 | 0-1 | 2-3 | 2-3");
  EXPECT_EQ(shares_of("numa:1 core:2 pu:1", 3), "0 | 0 | 1");
}

TEST(CpuShare, UsesEveryCpuAndLeavesNoPartEmpty) {
  const auto machine = Machine::from_synthetic("pack:2 numa:2 core:3 pu:2");
  for (int parts = 1; parts <= 40; ++parts) {
    std::vector<int> users(24);
    for (const CpuSet& share : share_cpus(*machine, parts)) {
      EXPECT_FALSE(share.cpus.empty()) << parts;
      for (const int cpu : share.cpus) ++users[static_cast<size_t>(cpu)];
    }
    for (const int count : users) EXPECT_GE(count, 1) << parts;
  }
}

TEST(CpuShare, RefusesZeroParts) {
  EXPECT_THROW(share_cpus(*Machine::from_synthetic("numa:1 pu:2"), 0), InvalidArgument);
  EXPECT_THROW(share_of_live_cpus(2, 2), InvalidArgument);
}

TEST(CpuShare, RestrictsCpusAndMemoryOfTheLiveMachine) {
  const auto whole = Machine::live();
  const CpuSet mine = share_of_live_cpus(0, 2);
  const pid_t child = fork();
  if (child == 0) {
    restrict_live_machine(mine, {mine, share_of_live_cpus(1, 2)});
    const auto machine = Machine::live();
    size_t cpus = 0;
    for (const CpuDomain& domain : machine->cpu_domains()) cpus += domain.cpus.cpus.size();
    const bool is_mine = cpus == mine.cpus.size() && machine->cpu_domains()[0].cpus.cpus[0] == mine.cpus[0];
    const bool is_half = machine->usable_memory_bytes() <= whole->usable_memory_bytes() / 2 + 1;
    _exit(is_mine && is_half && machine->usable_cpus() <= static_cast<int>(mine.cpus.size()) ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(CpuShare, RefusesUnavailableCpus) { EXPECT_THROW(restrict_live_machine({{1 << 20}}, {}), InvalidArgument); }

TEST(CpuShare, SplitsEqualMasksOfProcessesInOrder) {
  const ProcessPlace a{"a", {{0, 1, 2, 3}}};
  const ProcessPlace b{"b", {{0, 1, 2, 3}}};
  EXPECT_EQ(plan_cpu_shares({a, b, a}, "-bind-to core"), (std::vector<CpuShare>{{0, {0, 2}}, {0, {1}}, {1, {0, 2}}}));
}

TEST(CpuShare, RefusesOverlappingMasksAndNamesAllOfThem) {
  const std::vector<ProcessPlace> places = {{"a", {{0, 1, 2}}}, {"a", {{2, 3}}}, {"a", {{2, 3}}}, {"b", {{3}}}};
  try {
    plan_cpu_shares(places, "-bind-to core");
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_NE(std::string(error.what())
                  .find("got process 0 on CPUs 0-2, processes 1-2 on CPUs 2-3; start them with "
                        "-bind-to core, or unbound"),
              std::string::npos)
        << error.what();
  }
}

TEST(CpuShare, KeepsTheMaskOfASingleProcess) {
  EXPECT_EQ(take_cpu_share({{"a", {{5, 6}}}}, {{0, {0}}}, 0), (CpuSet{{5, 6}}));
}

}  // namespace
}  // namespace artifex_devices
