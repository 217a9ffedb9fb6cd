// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/topology/system_files.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "artifex_devices/topology/hwloc_version.h"
#include "artifex_devices/topology/loaded_machine.h"

namespace artifex_devices {
namespace {

// A root folder with made-up files of /proc and /sys.
class SystemFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const int cpu : affinity_cpus().cpus) {
      write("sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/core_cpus", "1\n");
    }
    write("sys/devices/system/node/online", "0\n");
    write("sys/devices/system/node/node0/meminfo", "Node 0 MemTotal: 1024 kB\n");
    write("proc/meminfo", "MemTotal: 1024 kB\n");
    write("proc/self/cgroup", "0::/\n");
    write("sys/fs/cgroup/cgroup.controllers", "cpu memory\n");
    write("proc/self/mountinfo", "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  void remove(const std::string& path) { ASSERT_GT(std::filesystem::remove_all(root_ / path), 0u) << path; }
  std::string at(const std::string& path) const { return (root_ / path).string(); }
  std::string first_cpu() const { return "sys/devices/system/cpu/cpu" + std::to_string(affinity_cpus().cpus[0]); }
  std::string problem() const { return sysfs_problem(affinity_cpus(), root_.string()); }
  std::vector<std::string> facts() const {
    std::vector<std::string> names;
    for (const MissingFact& missing : missing_facts(root_.string())) names.push_back(missing.fact);
    return names;
  }
  std::filesystem::path root_ =
      std::filesystem::path(testing::TempDir()) / ("artifex_files_" + std::to_string(getpid()));
};

TEST_F(SystemFilesTest, ReportNoProblemWhenAllFilesExist) {
  EXPECT_EQ(problem(), "");
  EXPECT_EQ(facts(), std::vector<std::string>{});
}

TEST_F(SystemFilesTest, DisableHwlocWithoutCores) {
  remove(first_cpu() + "/topology");
  EXPECT_EQ(problem(), at(first_cpu() + "/topology/thread_siblings") + " cannot be read (No such file or directory)");
  EXPECT_EQ(facts(), std::vector<std::string>{"cores, caches and packages"});
  write(first_cpu() + "/topology/thread_siblings", "1\n");
  EXPECT_EQ(problem(), "");
  write(first_cpu() + "/topology/thread_siblings", "");
  EXPECT_EQ(problem(), at(first_cpu() + "/topology/thread_siblings") + " is empty");
}

TEST_F(SystemFilesTest, DisableHwlocWhenTheNodeFolderIsEmpty) {
  remove("sys/devices/system/node/node0");
  EXPECT_EQ(problem(), at("sys/devices/system/node") + " has no node");
  EXPECT_EQ(facts(), (std::vector<std::string>{"cores, caches and packages", "memory nodes"}));
}

TEST_F(SystemFilesTest, EnableHwlocWithoutANodeFolder) {
  remove("sys/devices/system/node");
  EXPECT_EQ(problem(), "");
  EXPECT_EQ(facts(), std::vector<std::string>{"memory nodes"});
}

TEST_F(SystemFilesTest, ReportAnEmptyListOfNodes) {
  write("sys/devices/system/node/online", "");
  EXPECT_EQ(problem(), at("sys/devices/system/node/online") + " is empty");
}

TEST_F(SystemFilesTest, ReportAnEmptyListOfCpus) {
  write("sys/devices/system/cpu/online", "");
  EXPECT_EQ(problem(), at("sys/devices/system/cpu/online") + " is empty");
}

TEST_F(SystemFilesTest, ReportANodeWithoutCpus) {
  write("sys/devices/system/node/node0/cpumap", "");
  EXPECT_EQ(problem(), at("sys/devices/system/node/node0/cpumap") + " is empty");
}

TEST_F(SystemFilesTest, MemoryOfGpusIsNotThatOfTheHost) {
  write("proc/meminfo", "MemTotal: 5000 kB\nMemAvailable: 3000 kB\nSwapTotal: 10 kB\n");
  EXPECT_EQ(system_memory_bytes(root_.string()), 5000 * 1024);
  EXPECT_EQ(available_memory_bytes(root_.string()), 3000 * 1024);
  write("proc/driver/nvidia/gpus/0004:04:00.0/numa_status", "Node: 255\nStatus: online\n");
  write("proc/driver/nvidia/gpus/0004:05:00.0/numa_status", "Node: 254\nStatus: online\n");
  write("proc/driver/nvidia/gpus/0035:03:00.0/information", "Model: V100\n");
  write("sys/devices/system/node/node255/meminfo", "Node 255 MemTotal: 1000 kB\nNode 255 MemFree: 900 kB\n");
  write("sys/devices/system/node/node254/meminfo", "Node 254 MemTotal: 500 kB\nNode 254 MemFree: 400 kB\n");
  EXPECT_EQ(system_memory_bytes(root_.string()), 3500 * 1024);
  EXPECT_EQ(system_memory_bytes(root_.string(), true), 3510 * 1024);
  EXPECT_EQ(available_memory_bytes(root_.string()), 1700 * 1024);
}

TEST_F(SystemFilesTest, NameEachMissingFileWithItsDefault) {
  remove("proc/meminfo");
  remove("proc/self/cgroup");
  remove("sys/devices/system/node/node0/meminfo");
  const std::vector<MissingFact> missing = missing_facts(root_.string());
  ASSERT_EQ(missing.size(), 3u);
  EXPECT_EQ(missing[0].fact, "memory of node0");
  EXPECT_EQ(missing[1].reason, at("proc/meminfo") + " cannot be read (No such file or directory)");
  EXPECT_EQ(missing[1].assumed, "what sysinfo reports");
  EXPECT_EQ(missing[2].fact, "limits of the cgroup");
  EXPECT_EQ(missing[2].reason, at("proc/self/cgroup") + " cannot be read (No such file or directory)");
}

TEST(SystemMemory, QueriesTheSystemWithoutAFile) {
  EXPECT_GT(system_memory_bytes(), 0);
  EXPECT_EQ(system_memory_bytes("/nonexistent"), 0);  // another root is never filled up from this system
}

TEST_F(SystemFilesTest, ReadAvailableMemoryOrReportItUnknown) {
  EXPECT_EQ(available_memory_bytes(root_.string()), std::nullopt);  // kernels before 3.14
  write("proc/meminfo", "MemTotal: 2048 kB\nMemAvailable:    1024 kB\nBuffers: 1 kB\n");
  EXPECT_EQ(available_memory_bytes(root_.string()), 1024 * 1024);
  for (const char* odd :
       {"MemAvailable: x kB\n", "MemAvailable: -4 kB\n", "MemAvailable: 9223372036854775807 kB\n", ""}) {
    write("proc/meminfo", odd);
    EXPECT_EQ(available_memory_bytes(root_.string()), std::nullopt) << odd;
  }
  remove("proc/meminfo");
  EXPECT_EQ(available_memory_bytes(root_.string()), std::nullopt);
}

TEST(MemoryPolicy, IsTheDefaultOrReportsWhyNot) {
  const MemoryPolicy policy = memory_policy();
  EXPECT_NE(policy.name.empty(), policy.problem.empty());
}

TEST(HwlocVersion, IsThreeNumbers) { EXPECT_GE(hwloc_version().size(), 5u); }

}  // namespace
}  // namespace artifex_devices
