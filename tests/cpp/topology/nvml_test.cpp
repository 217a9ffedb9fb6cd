// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/topology/nvml.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "artifex_devices/base/error.h"

namespace artifex_devices {
namespace {

const std::string kA100 = "gpu=NVIDIA A100-SXM4-80GB|85899345920|8.0|0:1b:0|20b210de|";

// What the stand-in library answers with these settings.
NvmlReport read(const std::string& settings, const std::string& library = ARTIFEX_NVML_STAND_IN) {
  setenv("NVML_STAND_IN", settings.c_str(), 1);
  NvmlReport report = read_nvml(library);
  unsetenv("NVML_STAND_IN");
  return report;
}

using Texts = std::vector<std::string>;

TEST(Nvml, ReturnsTheFactsOfTheLibrary) {
  const NvmlReport report = read("driver=535.129.03;cuda=12020;" + kA100 +
                                 "switch@0:b0:0,gpu@0:36:0,off;gpu=Tesla T4|15843721216|7.5|1:d8:1f|1eb810de");
  EXPECT_EQ(report.library, ARTIFEX_NVML_STAND_IN);
  EXPECT_TRUE(report.is_ready);
  EXPECT_EQ(report.driver_version, "535.129.03");
  EXPECT_EQ(report.cuda_version, "12.2");
  EXPECT_EQ(report.problems, Texts{});
  ASSERT_EQ(report.gpus.size(), 2u);
  const NvmlGpu& first = report.gpus[0];
  EXPECT_EQ(first.index, 0);
  EXPECT_EQ(first.name, "NVIDIA A100-SXM4-80GB");
  EXPECT_EQ(first.memory_bytes, 85899345920);
  EXPECT_EQ(first.compute_capability, (ComputeCapability{8, 0}));
  EXPECT_EQ(first.pci_address, "0000:1b:00.0");
  EXPECT_EQ(first.vendor_id, 0x10de);
  EXPECT_EQ(first.device_id, 0x20b2);
  EXPECT_EQ(
      first.links,
      (std::vector<NvLink>{{0, true, "switch", "0000:b0:00.0"}, {1, true, "gpu", "0000:36:00.0"}, {2, false, "", ""}}));
  EXPECT_EQ(first.problems, Texts{});
  const NvmlGpu& second = report.gpus[1];
  EXPECT_EQ(second.name, "Tesla T4");
  EXPECT_EQ(second.pci_address, "0001:d8:1f.0");
  EXPECT_EQ(second.compute_capability, (ComputeCapability{7, 5}));
  EXPECT_EQ(second.links, std::vector<NvLink>{});
  EXPECT_EQ(second.problems, Texts{});
}

TEST(Nvml, AcceptsAMachineWithoutGpus) {
  const NvmlReport report = read("");
  EXPECT_TRUE(report.is_ready);
  EXPECT_TRUE(report.gpus.empty());
  EXPECT_EQ(report.problems, Texts{});
}

TEST(Nvml, IsShutDownAfterEveryFailure) {
  const std::string log = ::testing::TempDir() + "nvml_test_log";
  for (const std::string failure : {"", "nvmlDeviceGetCount_v2:4", "nvmlDeviceGetHandleByIndex_v2:15"}) {
    std::remove(log.c_str());
    const std::string settings = "log=" + log + ";" + kA100 + (failure.empty() ? "" : ";fail=" + failure);
    read(settings);
    std::ifstream file(log);
    Texts calls;
    for (std::string line; std::getline(file, line);) calls.push_back(line);
    ASSERT_GE(calls.size(), 2u) << failure;
    EXPECT_EQ(calls.front(), "nvmlInit_v2");
    EXPECT_EQ(calls.back(), "nvmlShutdown");
    EXPECT_EQ(std::ranges::count(calls, "nvmlInit_v2"), 1);
    EXPECT_EQ(std::ranges::count(calls, "nvmlShutdown"), 1);
  }
}

struct Refusal {
  std::string setting;
  std::string problem;
};

TEST(Nvml, ReportsWhyItDoesNotStart) {
  for (const auto& [setting, problem] : std::vector<Refusal>{
           {"nvmlInit_v2:4", "nvmlInit_v2: no permission (NVML error 4)"},
           {"nvmlInit_v2:9", "nvmlInit_v2: the driver is not loaded (NVML error 9)"},
           {"nvmlInit_v2:18", "nvmlInit_v2: the library is of another version than the driver (NVML error 18)"},
           {"nvmlInit_v2:999", "nvmlInit_v2: unknown error (NVML error 999)"},
           {"nvmlInit_v2:-7", "nvmlInit_v2: an error unknown here (NVML error -7)"},
           {"nvmlDeviceGetCount_v2:17",
            "nvmlDeviceGetCount_v2: the operating system or a cgroup blocks the GPU (NVML error 17)"}}) {
    const NvmlReport report = read(kA100 + ";fail=" + setting);
    EXPECT_FALSE(report.is_ready) << setting;
    EXPECT_TRUE(report.gpus.empty()) << setting;
    EXPECT_EQ(report.problems, Texts{problem});
  }
}

TEST(Nvml, OmitsOnlyTheFactOfAFailingFunction) {
  const std::string settings = kA100 + "gpu@0:36:0";
  const auto with = [&](const std::string& function) { return read(settings + ";fail=" + function + ":3"); };
  const NvmlGpu whole = read(settings).gpus.at(0);
  for (const std::string function : {"nvmlDeviceGetName", "nvmlDeviceGetMemoryInfo", "nvmlDeviceGetPciInfo_v3",
                                     "nvmlDeviceGetCudaComputeCapability"}) {
    const NvmlReport report = with(function);
    ASSERT_EQ(report.gpus.size(), 1u);
    const NvmlGpu& gpu = report.gpus[0];
    EXPECT_EQ(gpu.problems, Texts{function + ": not supported (NVML error 3)"});
    EXPECT_EQ(gpu.name, function == "nvmlDeviceGetName" ? "" : whole.name);
    EXPECT_EQ(gpu.memory_bytes, function == "nvmlDeviceGetMemoryInfo" ? std::nullopt : whole.memory_bytes);
    EXPECT_EQ(gpu.pci_address, function == "nvmlDeviceGetPciInfo_v3" ? "" : whole.pci_address);
    EXPECT_EQ(gpu.compute_capability,
              function == "nvmlDeviceGetCudaComputeCapability" ? std::nullopt : whole.compute_capability);
    EXPECT_EQ(gpu.links, whole.links);
  }
  EXPECT_EQ(with("nvmlDeviceGetNvLinkRemotePciInfo_v2").gpus.at(0).links, (std::vector<NvLink>{{0, true, "gpu", ""}}));
  EXPECT_EQ(with("nvmlDeviceGetNvLinkRemoteDeviceType").gpus.at(0).problems,
            Texts{"nvmlDeviceGetNvLinkRemoteDeviceType (link 0): not supported (NVML error 3)"});
  EXPECT_EQ(read(settings + ";fail=nvmlDeviceGetNvLinkState:15").gpus.at(0).problems,
            Texts{"nvmlDeviceGetNvLinkState (link 0): the GPU is lost: it has fallen off the bus (NVML error 15)"});
  EXPECT_EQ(read(kA100 + "gpu@0:1:0,gpu@0:2:0;fail=nvmlDeviceGetNvLinkRemotePciInfo_v2:3").gpus.at(0).problems,
            Texts{"nvmlDeviceGetNvLinkRemotePciInfo_v2 (link 0): not supported (NVML error 3)"});  // once for both
  const NvmlReport no_version = with("nvmlSystemGetDriverVersion");
  EXPECT_EQ(no_version.driver_version, "");
  EXPECT_EQ(no_version.cuda_version, "12.4");
  EXPECT_EQ(no_version.problems, Texts{"nvmlSystemGetDriverVersion: not supported (NVML error 3)"});
  EXPECT_EQ(with("nvmlSystemGetCudaDriverVersion").cuda_version, "");
  EXPECT_EQ(with("nvmlShutdown").problems, Texts{"nvmlShutdown: not supported (NVML error 3)"});
}

TEST(Nvml, CountsLostGpus) {
  const NvmlReport report = read(kA100 + ";count=3");
  ASSERT_EQ(report.gpus.size(), 3u);
  EXPECT_EQ(report.gpus[0].problems, Texts{});
  EXPECT_EQ(report.gpus[2].index, 2);
  EXPECT_EQ(report.gpus[2].name, "");
  EXPECT_EQ(report.gpus[2].problems, Texts{"nvmlDeviceGetHandleByIndex_v2: invalid argument (NVML error 2)"});
}

TEST(Nvml, ReportsImpossibleAnswers) {
  const NvmlReport report = read(
      "driver=*;cuda=-5;gpu=*|-1|-3.0|0:fff:0|0|other@0:0:ff;gpu=t\xc3\xa9\x01|N/"
      "A|8.0|0:1:0|0;gpu=x|0|700.1|0:2:0|0");
  EXPECT_EQ(report.driver_version, std::string(80, 'x'));
  EXPECT_EQ(report.cuda_version, "");
  EXPECT_EQ(report.problems, Texts{"nvmlSystemGetCudaDriverVersion: -5 is not a version"});
  ASSERT_EQ(report.gpus.size(), 3u);
  EXPECT_EQ(report.gpus[0].name, std::string(96, 'x'));
  EXPECT_EQ(report.gpus[0].memory_bytes, std::nullopt);
  EXPECT_EQ(report.gpus[0].vendor_id, 0);
  EXPECT_EQ(report.gpus[0].links, (std::vector<NvLink>{{0, true, "", ""}}));
  EXPECT_EQ(report.gpus[0].problems, (Texts{"nvmlDeviceGetMemoryInfo: 18446744073709551615 bytes is not a memory size",
                                            "nvmlDeviceGetPciInfo_v3: bus 4095 and device 0 are not a PCI address",
                                            "nvmlDeviceGetCudaComputeCapability: -3.0 is not a compute capability"}));
  EXPECT_EQ(report.gpus[1].name, "t???");
  EXPECT_EQ(report.gpus[1].problems, Texts{"nvmlDeviceGetMemoryInfo: not supported (NVML error 3)"});
  EXPECT_EQ(report.gpus[2].problems, (Texts{"nvmlDeviceGetMemoryInfo: 0 bytes is not a memory size",
                                            "nvmlDeviceGetCudaComputeCapability: 700.1 is not a compute capability"}));
}

TEST(Nvml, QueriesALimitedNumberOfGpus) {
  const NvmlReport report = read("count=4000000000");
  EXPECT_EQ(report.gpus.size(), 256u);
  EXPECT_EQ(report.problems, Texts{"nvmlDeviceGetCount_v2: 4000000000 GPUs; only the first 256 were queried"});
}

TEST(Nvml, NamesMissingFunctionsOnce) {
  const NvmlReport report = read(kA100 + ";" + kA100, ARTIFEX_NVML_STAND_IN_BARE);
  EXPECT_TRUE(report.is_ready);
  ASSERT_EQ(report.gpus.size(), 2u);
  EXPECT_EQ(report.gpus[1].problems, Texts{});
  EXPECT_EQ(report.problems.size(), 9u);
  EXPECT_EQ(report.problems.front(), "nvmlSystemGetDriverVersion: the library has no such function");
  EXPECT_EQ(report.problems.back(), "nvmlDeviceGetNvLinkRemoteDeviceType: the library has no such function");
}

TEST(Nvml, DoesNotStartAnotherLibrary) {
  const NvmlReport report = read("", ARTIFEX_NVML_STAND_IN_EMPTY);
  EXPECT_FALSE(report.is_ready);
  EXPECT_EQ(report.problems,
            (Texts{"nvmlInit_v2: the library has no such function", "nvmlShutdown: the library has no such function",
                   "nvmlDeviceGetCount_v2: the library has no such function",
                   "nvmlDeviceGetHandleByIndex_v2: the library has no such function"}));
}

TEST(Nvml, ReportsMissingAndInvalidLibraries) {
  const NvmlReport absent = read_nvml("/nowhere/libnvidia-ml.so.1");
  EXPECT_FALSE(absent.is_ready);
  ASSERT_EQ(absent.problems.size(), 1u);
  EXPECT_TRUE(absent.problems[0].starts_with("cannot be loaded: /nowhere/libnvidia-ml.so.1: ")) << absent.problems[0];
  const std::string text = ::testing::TempDir() + "no_library.so";
  std::ofstream(text) << "text";
  EXPECT_TRUE(read_nvml(text).problems.at(0).starts_with("cannot be loaded: "));
}

TEST(Nvml, RefusesRelativePaths) {
  for (const std::string library : {"libnvidia-ml.so.1", "./x.so", "x"}) {
    EXPECT_THROW(read_nvml(library), InvalidArgument) << library;
  }
  EXPECT_THROW(read_nvml(std::string("/a\0b", 4)), InvalidArgument);
}

}  // namespace
}  // namespace artifex_devices
