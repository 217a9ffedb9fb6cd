// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/cluster/hardware_type.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace artifex_devices {
namespace {

struct Case {
  std::string platform;
  std::string kind;
  std::string expected;
};

class Detection : public ::testing::TestWithParam<Case> {};

TEST_P(Detection, NamesTheChipOfTheDeviceKind) {
  const Case& c = GetParam();
  EXPECT_EQ(to_string(detect_hardware_type(c.platform, c.kind)), c.expected) << c.platform << " / " << c.kind;
}

INSTANTIATE_TEST_SUITE_P(Kinds, Detection,
                         ::testing::ValuesIn(std::vector<Case>{
                             {"tpu", "TPU v5 lite", "tpu_v5e"},
                             {"tpu", "TPU v5e", "tpu_v5e"},
                             {"TPU", "tpu V5 LITE", "tpu_v5e"},
                             {"tpu", "TPU v5litepod-8", "tpu_v5e"},
                             {"tpu", "TPU v5", "tpu_v5p"},
                             {"tpu", "TPU v5p", "tpu_v5p"},
                             {"tpu", "TPU v4", "tpu_v4"},
                             {"tpu", "TPU v4 lite", "unknown"},
                             {"tpu", "TPU v6 lite", "unknown"},
                             {"tpu", "TPU v6e", "unknown"},
                             {"tpu", "TPU v3", "unknown"},
                             {"tpu", "", "unknown"},
                             {"gpu", "NVIDIA H100 80GB HBM3", "h100"},
                             {"cuda", "NVIDIA H100 PCIe", "h100"},
                             {"gpu", "NVIDIA A100-SXM4-80GB", "a100"},
                             {"gpu", "a100", "a100"},
                             {"CUDA", "Tesla V100-SXM2-16GB", "v100"},
                             {"gpu", "Tesla V100S-PCIE-32GB", "v100"},
                             {"gpu", "NVIDIA RTX A1000", "unknown"},
                             {"gpu", "NVIDIA H200", "unknown"},
                             {"gpu", "NVIDIA GH200 480GB", "unknown"},
                             {"gpu", "Tesla T4", "unknown"},
                             {"gpu", "NVIDIA L4", "unknown"},
                             {"gpu", "", "unknown"},
                             {"rocm", "AMD Instinct MI250X", "unknown"},
                             {"cpu", "cpu", "cpu"},
                             {"CPU", "AMD EPYC 7763", "cpu"},
                             {"cpu", "NVIDIA H100", "cpu"},
                             {"metal", "Apple M2", "unknown"},
                             {"", "", "unknown"},
                         }));

// Every kind that the chips are known to have in JAX, and what older drivers and the PCI database call them.
INSTANTIATE_TEST_SUITE_P(KindsOfJax, Detection,
                         ::testing::ValuesIn(std::vector<Case>{
                             {"tpu", "TPU v2", "unknown"},
                             {"tpu", "TPU7", "unknown"},
                             {"tpu", "TPU7x", "unknown"},
                             {"tpu", "TPU8i", "unknown"},
                             {"tpu", "TPU8t", "unknown"},
                             {"cuda", "Tesla V100-SXM3-32GB", "v100"},
                             {"cuda", "Tesla V100-SXM3-32GB-H", "v100"},
                             {"cuda", "NVIDIA A100-SXM4-40GB", "a100"},
                             {"cuda", "NVIDIA A100-PCIE-40GB", "a100"},
                             {"cuda", "NVIDIA A100 80GB PCIe", "a100"},
                             {"cuda", "A100-SXM4-40GB", "a100"},
                             {"cuda", "NVIDIA H100 NVL", "h100"},
                             {"cuda", "NVIDIA B200", "unknown"},
                             {"cuda", "NVIDIA GB200", "unknown"},
                             {"cuda", "NVIDIA A10", "unknown"},
                             {"cuda", "NVIDIA T400 4GB", "unknown"},
                             {"rocm", "AMD Instinct MI300X", "unknown"},
                             {"rocm", "gfx942", "unknown"},
                             {"rocm", "gfx90a:sramecc+:xnack-", "unknown"},
                         }));
INSTANTIATE_TEST_SUITE_P(NamesOfPci, Detection,
                         ::testing::ValuesIn(std::vector<Case>{
                             {"cuda", "GV100GL [Tesla V100 SXM2 16GB]", "v100"},
                             {"cuda", "GV100GL [Tesla V100 SXM2 32GB]", "v100"},
                             {"cuda", "GA100 [A100 SXM4 40GB]", "a100"},
                             {"cuda", "GA100 [A100 SXM4 80GB]", "a100"},
                             {"cuda", "GA100 [A100 PCIe 80GB]", "a100"},
                             {"cuda", "GH100 [H100 SXM5 80GB]", "h100"},
                             {"cuda", "GH100 [H100 PCIe]", "h100"},
                             {"cuda", "GA100GL [A30 PCIe]", "unknown"},
                             {"cuda", "GP100GL [Tesla P100 PCIe 16GB]", "unknown"},
                             {"cuda", "TU104GL [Tesla T4]", "unknown"},
                             {"rocm", "Vega 20", "unknown"},
                         }));

TEST(HardwareType, ConvertsNamesInBothDirections) {
  const std::vector<std::string> names = {"tpu_v5e", "tpu_v5p", "tpu_v4", "h100", "a100", "v100", "cpu", "unknown"};
  ASSERT_EQ(names.size(), static_cast<std::size_t>(kHardwareTypeCount));
  for (int i = 0; i < kHardwareTypeCount; ++i) {
    const auto type = static_cast<HardwareType>(i);
    EXPECT_EQ(to_string(type), names[static_cast<std::size_t>(i)]);
    EXPECT_EQ(hardware_type_from_name(to_string(type)), type);
  }
  EXPECT_EQ(hardware_type_from_name("H100"), std::nullopt);
  EXPECT_EQ(hardware_type_from_name(""), std::nullopt);
}

TEST(HardwareType, TreatsValuesOutsideTheEnumerationAsUnknown) {
  EXPECT_EQ(to_string(static_cast<HardwareType>(200)), "unknown");
}

}  // namespace
}  // namespace artifex_devices
