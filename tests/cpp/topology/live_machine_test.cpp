// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "artifex_devices/topology/binding.h"
#include "artifex_devices/topology/loaded_machine.h"

namespace artifex_devices {
namespace {

// Runs `body` in a child process, which may change what belongs to a process; its result is the exit status.
int in_child(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

CpuSet cpus_of_domains(const Machine& machine) {
  CpuSet all;
  for (const CpuDomain& domain : machine.cpu_domains()) {
    all.cpus.insert(all.cpus.end(), domain.cpus.cpus.begin(), domain.cpus.cpus.end());
  }
  std::ranges::sort(all.cpus);
  return all;
}

TEST(LiveMachine, HasTheCpusOfTheAffinityMask) {
  const auto machine = Machine::live();
  EXPECT_TRUE(machine->is_live());
  EXPECT_EQ(machine->source(), "live");
  EXPECT_EQ(machine, Machine::live());
  EXPECT_EQ(cpus_of_domains(*machine), affinity_cpus());
  EXPECT_GE(machine->usable_cpus(), 1);
  EXPECT_LE(machine->usable_cpus(), static_cast<int>(affinity_cpus().cpus.size()));
  EXPECT_GT(machine->usable_memory_bytes(), 0);
}

TEST(LiveMachine, ShrinksWithTheAffinityMask) {
  const CpuSet allowed = affinity_cpus();
  if (allowed.cpus.size() < 2) GTEST_SKIP() << "one CPU only";
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the mask of a process is that of all its threads, and the sanitizer has one of its own";
#endif
  EXPECT_EQ(in_child([&] {
              cpu_set_t one;
              CPU_ZERO(&one);
              CPU_SET(static_cast<size_t>(allowed.cpus[1]), &one);
              if (sched_setaffinity(0, sizeof(one), &one) != 0) return 2;
              const auto machine = load_live_machine();
              return cpus_of_domains(*machine).cpus == std::vector<int>{allowed.cpus[1]} && machine->usable_cpus() == 1
                         ? 0
                         : 1;
            }),
            0);
}

TEST(LiveMachine, IgnoresVariablesThatReplaceTheMachine) {
  const std::string other = ARTIFEX_TEST_DATA "/machines/two_packages_two_memories.xml";
  const std::vector<std::pair<std::string, std::string>> variables = {{"HWLOC_XMLFILE", other},
                                                                      {"HWLOC_SYNTHETIC", "numa:4 pu:16"},
                                                                      {"HWLOC_FSROOT", "/nonexistent"},
                                                                      {"HWLOC_COMPONENTS", "synthetic,stop"}};
  for (const auto& [name, value] : variables) {
    SCOPED_TRACE(name);
    EXPECT_EQ(in_child([&name = name, &value = value] {
                setenv(name.c_str(), value.c_str(), 1);
                const auto machine = load_live_machine();
                if (!machine->is_live() || cpus_of_domains(*machine) != affinity_cpus()) return 1;
                if (std::getenv(name.c_str()) == nullptr || std::getenv(name.c_str()) != value) return 2;
                return bind_this_thread(*machine, machine->cpu_domains()[0].cpus) ? 0 : 3;
              }),
              0);
  }
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // their shadows need the address space
TEST(LiveMachine, LimitsMemoryToTheAddressSpace) {
  EXPECT_EQ(in_child([] {
              const rlimit limit{rlim_t{1} << 30, RLIM_INFINITY};
              if (setrlimit(RLIMIT_AS, &limit) != 0) return 2;
              const bool bounded = load_live_machine()->usable_memory_bytes() <= int64_t{1} << 30;
              return bounded && usable_memory_bytes_now() <= int64_t{1} << 30 ? 0 : 1;
            }),
            0);
}
#endif

TEST(LiveMachine, BindsAThreadToADomain) {
  const auto machine = Machine::live();
  const CpuSet& cpus = machine->cpu_domains().back().cpus;
  bool bound = false;
  CpuSet after;
  std::thread([&] {
    bound = bind_this_thread(*machine, cpus);
    after = affinity_cpus();
  }).join();
  ASSERT_TRUE(bound);
  EXPECT_EQ(after, cpus);
}

TEST(LiveMachine, RefusesToBindToUnknownCpus) {
  const auto machine = Machine::live();
  const CpuSet before = affinity_cpus();
  EXPECT_FALSE(bind_this_thread(*machine, CpuSet{}));
  EXPECT_FALSE(bind_this_thread(*machine, CpuSet{{60000}}));
  EXPECT_FALSE(bind_this_thread(*machine, CpuSet{{-1}}));
  EXPECT_EQ(affinity_cpus(), before);
}

TEST(LiveMachine, BindsMemoryToItsNode) {
  const auto machine = Machine::live();
  const size_t bytes = size_t{1} << 20;
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(data, MAP_FAILED);
  const int node = machine->cpu_domains()[0].default_node;
  const bool bound = bind_memory(*machine, node, data, bytes);
  *static_cast<volatile char*>(data) = 1;
  int os_index = -1;  // of the node that has the page, by Linux's own call; negative where it is not permitted
  void* page = data;
  const bool found = syscall(SYS_move_pages, 0, 1UL, &page, nullptr, &os_index, 0) == 0 && os_index >= 0;
  EXPECT_TRUE(!bound || !found || os_index == machine->numa_nodes()[static_cast<size_t>(node)].os_index) << os_index;
  EXPECT_FALSE(bind_memory(*machine, 4711, data, bytes));
  EXPECT_FALSE(bind_memory(*machine, -1, data, bytes));
  munmap(data, bytes);
}

TEST(LiveMachine, ExportsAndReadsItself) {
  const auto again = Machine::from_xml_text(Machine::live()->to_xml());
  EXPECT_EQ(cpus_of_domains(*again), cpus_of_domains(*Machine::live()));
  EXPECT_FALSE(bind_this_thread(*again, again->cpu_domains()[0].cpus));
}

class SystemXmlTest : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(root_ / "proc"); }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  std::filesystem::path root_ =
      std::filesystem::path(testing::TempDir()) / ("artifex_system_" + std::to_string(getpid()));
};

TEST_F(SystemXmlTest, DescribesNodesWithAllowedCpus) {
  write("sys/devices/system/node/node0/cpulist", "0-3\n");
  write("sys/devices/system/node/node0/meminfo", "Node 0 MemTotal:  1024 kB\nNode 0 MemFree: 3 kB\n");
  write("sys/devices/system/node/node8/cpulist", "4-7\n");
  write("sys/devices/system/node/node8/meminfo", "Node 8 MemTotal:  2048 kB\n");
  write("sys/devices/system/node/node9/cpulist", "\n");
  const auto machine = Machine::from_xml_text(system_xml(CpuSet{{1, 2, 6}}, root_.string()));
  ASSERT_EQ(machine->numa_nodes().size(), 2u);
  EXPECT_EQ(machine->numa_nodes()[1].os_index, 8);
  EXPECT_EQ(machine->numa_nodes()[1].memory_bytes, 2048 * 1024);
  ASSERT_EQ(machine->cpu_domains().size(), 2u);
  EXPECT_EQ(machine->cpu_domains()[0].cpus.to_string(), "1-2");
  EXPECT_EQ(machine->cpu_domains()[1].cpus.to_string(), "6");
}

TEST_F(SystemXmlTest, HasOneDomainWithAllCpusWithoutNodes) {
  write("proc/meminfo", "MemTotal:       4096 kB\nMemFree:  1 kB\n");
  const auto machine = Machine::from_xml_text(system_xml(CpuSet{{0, 5}}, root_.string()));
  ASSERT_EQ(machine->cpu_domains().size(), 1u);
  EXPECT_EQ(machine->cpu_domains()[0].cpus.to_string(), "0,5");
  EXPECT_EQ(machine->usable_memory_bytes(), 4096 * 1024);
}

TEST(NoTopology, HasOneDomainWithTheGivenCpus) {
  const LoadedMachine machine(CpuSet{{2, 3, 7}}, 1 << 20);
  ASSERT_EQ(machine.cpu_domains().size(), 1u);
  EXPECT_EQ(machine.cpu_domains()[0].cpus.to_string(), "2-3,7");
  EXPECT_EQ(machine.numa_nodes().size(), 1u);
  EXPECT_EQ(machine.usable_cpus(), 3);
  EXPECT_FALSE(bind_this_thread(machine, machine.cpu_domains()[0].cpus));
}

TEST(Limits, RoundAQuotaUpToAtLeastOneCpu) {
  LoadedMachine machine(CpuSet{{0, 1, 2, 3}}, int64_t{1} << 40);
  machine.apply_limits(2.5, int64_t{1} << 30);
  EXPECT_EQ(machine.usable_cpus(), 3);
  EXPECT_EQ(machine.usable_memory_bytes(), int64_t{1} << 30);
  machine.apply_limits(0.25, std::nullopt);
  EXPECT_EQ(machine.usable_cpus(), 1);
}

}  // namespace
}  // namespace artifex_devices
