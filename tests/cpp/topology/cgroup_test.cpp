// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/topology/cgroup.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace artifex_devices {
namespace {

// A root folder with made-up files of /proc and /sys.
class CgroupTest : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove_all(root_); }
  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  CgroupLimits limits() const { return read_cgroup_limits(root_.string()); }

  static constexpr const char* kVersion2 =
      "24 1 0:22 / /proc rw - proc proc rw\n"
      "31 23 0:28 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
  std::filesystem::path root_ =
      std::filesystem::path(testing::TempDir()) / ("artifex_cgroup_" + std::to_string(getpid()));
};

TEST_F(CgroupTest, HasNoLimitWhenNothingIsReadable) {
  EXPECT_FALSE(limits().cpus);
  EXPECT_FALSE(limits().memory_bytes);
}

TEST_F(CgroupTest, ReadsQuotaAndMemoryOfVersion2) {
  write("proc/self/mountinfo", kVersion2);
  write("proc/self/cgroup", "0::/work.slice/job\n");
  write("sys/fs/cgroup/work.slice/job/cpu.max", "150000 100000\n");
  write("sys/fs/cgroup/work.slice/job/memory.max", "1073741824\n");
  EXPECT_DOUBLE_EQ(limits().cpus.value(), 1.5);
  EXPECT_EQ(limits().memory_bytes.value(), 1073741824);
}

TEST_F(CgroupTest, TakesTheTightestLimitOfAllParents) {
  write("proc/self/mountinfo", kVersion2);
  write("proc/self/cgroup", "0::/a/b/c\n");
  write("sys/fs/cgroup/a/cpu.max", "200000 100000\n");
  write("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  write("sys/fs/cgroup/a/b/c/cpu.max", "800000 100000\n");
  write("sys/fs/cgroup/a/b/memory.max", "4096000\n");
  write("sys/fs/cgroup/a/b/c/memory.max", "max\n");
  EXPECT_DOUBLE_EQ(limits().cpus.value(), 2.0);
  EXPECT_EQ(limits().memory_bytes.value(), 4096000);
}

TEST_F(CgroupTest, HasNoLimitWhenAllValuesAreMax) {
  write("proc/self/mountinfo", kVersion2);
  write("proc/self/cgroup", "0::/\n");
  write("sys/fs/cgroup/cpu.max", "max 100000\n");
  write("sys/fs/cgroup/memory.max", "max\n");
  EXPECT_FALSE(limits().cpus);
  EXPECT_FALSE(limits().memory_bytes);
}

TEST_F(CgroupTest, ReadsMountedControllersOfVersion1) {
  write("proc/self/mountinfo",
        "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
        "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
  write("proc/self/cgroup", "4:memory:/job\n2:cpu,cpuacct:/job/inner\n1:name=systemd:/x\n");
  write("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "50000\n");
  write("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
  write("sys/fs/cgroup/cpu,cpuacct/job/inner/cpu.cfs_quota_us", "-1\n");
  write("sys/fs/cgroup/cpu,cpuacct/job/inner/cpu.cfs_period_us", "100000\n");
  write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "268435456\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_DOUBLE_EQ(limits().cpus.value(), 0.5);
  EXPECT_EQ(limits().memory_bytes.value(), 268435456);
}

TEST_F(CgroupTest, FindsTheMountedGroupOfAContainerByItsRoot) {
  write("proc/self/mountinfo", "35 31 0:32 /docker/0123 /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
  write("proc/self/cgroup", "4:memory:/docker/0123/sub\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "1000000\n");
  write("sys/fs/cgroup/memory/sub/memory.limit_in_bytes", "2000000\n");
  EXPECT_EQ(limits().memory_bytes.value(), 1000000);
}

TEST_F(CgroupTest, UsesTheMountedGroupForPathsOutsideTheMount) {
  write("proc/self/mountinfo", kVersion2);
  write("proc/self/cgroup", "0::/../../elsewhere\n");
  write("sys/fs/cgroup/memory.max", "7000000\n");
  write("elsewhere/memory.max", "1\n");
  EXPECT_EQ(limits().memory_bytes.value(), 7000000);
}

TEST_F(CgroupTest, UnescapesSpacesInMountPoints) {
  write("proc/self/mountinfo", "31 23 0:28 / /my\\040groups rw - cgroup2 cgroup2 rw\n");
  write("proc/self/cgroup", "0::/a\n");
  write("my groups/a/memory.max", "12345678\n");
  EXPECT_EQ(limits().memory_bytes.value(), 12345678);
}

TEST_F(CgroupTest, IgnoresMalformedLimits) {
  write("proc/self/mountinfo", std::string("- - -\n\n31 23 - cgroup2\n") + kVersion2);
  write("proc/self/cgroup", "junk\n:\n0:\n::\n0::/a\n");
  write("sys/fs/cgroup/a/cpu.max", "lots 0\n");
  write("sys/fs/cgroup/a/memory.max", "-5\n");
  EXPECT_FALSE(limits().cpus);
  EXPECT_FALSE(limits().memory_bytes);
}

TEST_F(CgroupTest, UsesTheMountedGroupForPathsWithoutSlash) {
  write("proc/self/mountinfo", kVersion2);
  write("sys/fs/cgroup/memory.max", "7000000\n");
  for (const char* line : {"::::\n", "0::a\n", "0::..\n", "0:::\n"}) {
    write("proc/self/cgroup", line);
    EXPECT_EQ(limits().memory_bytes, 7000000) << line;
  }
}

TEST_F(CgroupTest, ReportsTheFilesOfTheTightestLimits) {
  write("proc/self/mountinfo", kVersion2);
  write("proc/self/cgroup", "0::/a/b\n");
  write("sys/fs/cgroup/a/b/cpu.max", "200000 100000\n");
  write("sys/fs/cgroup/a/cpu.max", "50000 100000\n");
  write("sys/fs/cgroup/a/b/memory.max", "4096000\n");
  write("sys/fs/cgroup/a/memory.max", "max\n");
  const CgroupReport report = read_cgroup_report(root_.string());
  const std::string group = root_.string() + "/sys/fs/cgroup/a";
  EXPECT_DOUBLE_EQ(report.limits.cpus.value(), 0.5);
  EXPECT_EQ(report.cpus_from, group + "/cpu.max");
  EXPECT_EQ(report.memory_from, group + "/b/memory.max");
  ASSERT_EQ(report.files.size(), 4u);
  EXPECT_EQ(report.files[2].path, group + "/cpu.max");
  EXPECT_EQ(report.files[2].text, "50000 100000");
  EXPECT_EQ(report.problems, std::vector<std::string>{});
}

TEST_F(CgroupTest, ReportsUnreadableFiles) {
  const std::string proc = root_.string() + "/proc/self/";
  EXPECT_EQ(read_cgroup_report(root_.string()).problems,
            (std::vector<std::string>{proc + "mountinfo cannot be read (No such file or directory)",
                                      proc + "cgroup cannot be read (No such file or directory)"}));
  write("proc/self/mountinfo", "24 1 0:22 / /proc rw - proc proc rw\n");
  write("proc/self/cgroup", "0::/\n");
  EXPECT_EQ(read_cgroup_report(root_.string()).problems,
            std::vector<std::string>{"no cgroup is mounted, so their files cannot be seen"});
  write("proc/self/mountinfo", kVersion2);
  EXPECT_EQ(read_cgroup_report(root_.string()).problems,
            std::vector<std::string>{root_.string() + "/sys/fs/cgroup cannot be read (No such file or directory)"});
  std::filesystem::create_directories(root_ / "sys/fs/cgroup");
  EXPECT_EQ(read_cgroup_report(root_.string()).problems,
            std::vector<std::string>{root_.string() + "/sys/fs/cgroup is empty"});
  write("sys/fs/cgroup/cpu.max", "");
  EXPECT_EQ(read_cgroup_report(root_.string()).problems,
            std::vector<std::string>{root_.string() + "/sys/fs/cgroup/cpu.max is empty"});
}

TEST_F(CgroupTest, ReportsMalformedFiles) {
  write("proc/self/mountinfo", kVersion2);
  write("proc/self/cgroup", "0::/\n");
  write("sys/fs/cgroup/cpu.max", "spam\n");
  write("sys/fs/cgroup/memory.max", "ham\n");
  const std::string group = (root_ / "sys/fs/cgroup").string();
  EXPECT_EQ(read_cgroup_report(root_.string()).problems,
            (std::vector<std::string>{group + "/cpu.max does not hold two numbers",
                                      group + "/memory.max does not hold a number"}));
  write("sys/fs/cgroup/cpu.max", "max spam\n");
  write("sys/fs/cgroup/memory.max", "max\n");
  EXPECT_EQ(read_cgroup_report(root_.string()).problems,
            std::vector<std::string>{group + "/cpu.max does not hold a number"});
}

TEST_F(CgroupTest, TakesTheCpusetOfTheInnermostGroup) {
  write("proc/self/mountinfo", kVersion2);
  write("proc/self/cgroup", "0::/a\n");
  write("sys/fs/cgroup/a/cpuset.cpus.effective", "0,2-3\n");
  write("sys/fs/cgroup/cpuset.cpus.effective", "0-7\n");
  EXPECT_EQ(read_cgroup_report(root_.string()).cpuset, "0,2-3");
  EXPECT_EQ(read_cgroup_report(root_.string()).cpuset_from, root_.string() + "/sys/fs/cgroup/a/cpuset.cpus.effective");
}

TEST_F(CgroupTest, FindsTheCpusetOfVersion1UnderEitherName) {
  write("proc/self/mountinfo", "34 31 0:31 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n");
  write("proc/self/cgroup", "3:cpuset:/\n");
  write("sys/fs/cgroup/cpuset/cpuset.cpus", "0-3\n");
  EXPECT_EQ(read_cgroup_report(root_.string()).cpuset, "0-3");
  write("sys/fs/cgroup/cpuset/cpuset.effective_cpus", "1\n");
  EXPECT_EQ(read_cgroup_report(root_.string()).cpuset, "1");
}

}  // namespace
}  // namespace artifex_devices
