// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/device/cuda/driver_problem.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace artifex_devices::cuda {
namespace {

const std::string kLibrary = "libcuda.so.1";

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::string fix_of(Result error, const DriverSurroundings& surroundings = {}) {
  return explain_error("cuInit failed", error, surroundings).fix;
}

TEST(DriverProblem, AMachineWithoutTheDriverNeedsIt) {
  const DriverProblem problem = explain_missing_library(kLibrary, "no such file", {});
  EXPECT_EQ(problem.what, "libcuda.so.1 cannot be loaded (no such file)");
  EXPECT_EQ(problem.fix, "on a machine with an NVIDIA GPU install NVIDIA's driver");
}

TEST(DriverProblem, AKernelModuleWithoutTheLibraryNeedsTheLibrary) {
  DriverSurroundings surroundings;
  surroundings.has_kernel_module = true;
  const DriverProblem problem = explain_missing_library(kLibrary, "", surroundings);
  EXPECT_EQ(problem.what, "libcuda.so.1 cannot be loaded (no reason given); the kernel module of the driver is loaded");
  EXPECT_TRUE(contains(problem.fix, "apt-get install libcuda1")) << problem.fix;
}

TEST(DriverProblem, AContainerWithoutTheLibraryNeedsAccessToTheGpus) {
  DriverSurroundings surroundings;
  surroundings.is_container = true;
  EXPECT_TRUE(contains(explain_missing_library(kLibrary, "", surroundings).fix, "docker run --gpus all"));
  surroundings.is_kubernetes = true;
  EXPECT_TRUE(contains(explain_missing_library(kLibrary, "", surroundings).fix, "nvidia.com/gpu: 1"));
  EXPECT_TRUE(contains(fix_of(kNoDevice, surroundings), "nvidia.com/gpu: 1"));
}

TEST(DriverProblem, AnOldDriverIsNamedWithItsVersion) {
  const DriverProblem problem = explain_old_driver(kLibrary, "cuMemAllocAsync", 10020);
  EXPECT_EQ(problem.what, "libcuda.so.1 (of CUDA 10.2) has no function cuMemAllocAsync");
  EXPECT_EQ(problem.fix, "update NVIDIA's driver to one for CUDA 11.2 or newer");
  EXPECT_EQ(explain_old_driver(kLibrary, "cuInit", 0).what, "libcuda.so.1 has no function cuInit");
}

TEST(DriverProblem, ADeviceFileThatMayNotBeOpenedIsNamed) {
  DriverSurroundings surroundings;
  surroundings.denied_device = "/dev/nvidiactl";
  for (const Result error : {kNoDevice, kOperatingSystem, kNotPermitted}) {
    EXPECT_EQ(fix_of(error, surroundings),
              "this user may not open /dev/nvidiactl; add it to the group of that file and log in again: "
              "sudo usermod -aG \"$(stat -c %G /dev/nvidiactl)\" \"$USER\"");
  }
  EXPECT_TRUE(contains(fix_of(kOperatingSystem), "sudo nvidia-modprobe"));
}

TEST(DriverProblem, EachErrorOfTheDriverHasARepair) {
  DriverSurroundings hidden;
  hidden.visible_gpus = "7";
  EXPECT_EQ(fix_of(kNoDevice, hidden), "unset CUDA_VISIBLE_DEVICES, which is \"7\", or name an existing GPU in it");
  EXPECT_TRUE(contains(fix_of(kNoDevice), "nvidia-smi"));
  EXPECT_TRUE(contains(fix_of(kStubLibrary), "LD_LIBRARY_PATH"));
  EXPECT_TRUE(contains(fix_of(kSystemNotReady), "systemctl start nvidia-fabricmanager"));
  EXPECT_TRUE(contains(fix_of(kSystemDriverMismatch), "restart the machine"));
  EXPECT_TRUE(contains(fix_of(kCompatNotSupported), "update the driver"));
  EXPECT_TRUE(contains(fix_of(kUnknown), "dmesg"));
}

TEST(DriverProblem, TheSurroundingsAreReadFromFiles) {
  const std::string root = ::testing::TempDir() + "driver_surroundings";
  std::filesystem::remove_all(root);
  for (const char* folder : {"/proc/driver/nvidia", "/run", "/dev"}) {
    std::filesystem::create_directories(root + folder);
  }
  const DriverSurroundings before = read_driver_surroundings(root);
  EXPECT_FALSE(before.has_kernel_module);
  EXPECT_EQ(before.denied_device, "");

  const std::string device = root + "/dev/nvidiactl";
  for (const std::string& file : {root + "/proc/driver/nvidia/version", root + "/run/.containerenv", device}) {
    std::ofstream(file) << "text";
  }
  EXPECT_EQ(read_driver_surroundings(root).denied_device, "");
  ASSERT_EQ(chmod(device.c_str(), 0), 0);
  const uid_t user = geteuid();
  constexpr uid_t kNobody = 65534;
  if (user == 0) {  // root may open any file
    ASSERT_EQ(seteuid(kNobody), 0);
  }
  const DriverSurroundings after = read_driver_surroundings(root);
  if (user == 0) {
    ASSERT_EQ(seteuid(user), 0);
  }
  EXPECT_TRUE(after.has_kernel_module);
  EXPECT_TRUE(after.is_container);
  EXPECT_EQ(after.denied_device, device);
  std::filesystem::remove_all(root);
}

}  // namespace
}  // namespace artifex_devices::cuda
