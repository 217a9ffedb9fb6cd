// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "artifex_devices/topology/machine.h"

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

TEST_F(CgroupTest, NothingReadableIsNoLimit) {
  EXPECT_FALSE(limits().cpus);
  EXPECT_FALSE(limits().memory_bytes);
}

TEST_F(CgroupTest, Version2ReadsQuotaAndMemory) {
  write("proc/self/mountinfo", kVersion2);
  write("proc/self/cgroup", "0::/work.slice/job\n");
  write("sys/fs/cgroup/work.slice/job/cpu.max", "150000 100000\n");
  write("sys/fs/cgroup/work.slice/job/memory.max", "1073741824\n");
  EXPECT_DOUBLE_EQ(limits().cpus.value(), 1.5);
  EXPECT_EQ(limits().memory_bytes.value(), 1073741824);
}

TEST_F(CgroupTest, Version2TakesTheTightestOnTheWayUp) {
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

TEST_F(CgroupTest, MaxEverywhereIsNoLimit) {
  write("proc/self/mountinfo", kVersion2);
  write("proc/self/cgroup", "0::/\n");
  write("sys/fs/cgroup/cpu.max", "max 100000\n");
  write("sys/fs/cgroup/memory.max", "max\n");
  EXPECT_FALSE(limits().cpus);
  EXPECT_FALSE(limits().memory_bytes);
}

TEST_F(CgroupTest, Version1ReadsEachControllerWhereItIsMounted) {
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

TEST_F(CgroupTest, AContainersMountedGroupIsFoundByItsRoot) {
  write("proc/self/mountinfo", "35 31 0:32 /docker/0123 /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
  write("proc/self/cgroup", "4:memory:/docker/0123/sub\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "1000000\n");
  write("sys/fs/cgroup/memory/sub/memory.limit_in_bytes", "2000000\n");
  EXPECT_EQ(limits().memory_bytes.value(), 1000000);
}

TEST_F(CgroupTest, APathThatLeavesTheMountMeansTheMountedGroup) {
  write("proc/self/mountinfo", kVersion2);
  write("proc/self/cgroup", "0::/../../elsewhere\n");
  write("sys/fs/cgroup/memory.max", "7000000\n");
  write("elsewhere/memory.max", "1\n");
  EXPECT_EQ(limits().memory_bytes.value(), 7000000);
}

TEST_F(CgroupTest, BlanksInMountPointsAreUnescaped) {
  write("proc/self/mountinfo", "31 23 0:28 / /my\\040groups rw - cgroup2 cgroup2 rw\n");
  write("proc/self/cgroup", "0::/a\n");
  write("my groups/a/memory.max", "12345678\n");
  EXPECT_EQ(limits().memory_bytes.value(), 12345678);
}

TEST_F(CgroupTest, JunkIsNoLimit) {
  write("proc/self/mountinfo", std::string("- - -\n\n31 23 - cgroup2\n") + kVersion2);
  write("proc/self/cgroup", "junk\n:\n0:\n::\n0::/a\n");
  write("sys/fs/cgroup/a/cpu.max", "lots 0\n");
  write("sys/fs/cgroup/a/memory.max", "-5\n");
  EXPECT_FALSE(limits().cpus);
  EXPECT_FALSE(limits().memory_bytes);
}

}  // namespace
}  // namespace artifex_devices
