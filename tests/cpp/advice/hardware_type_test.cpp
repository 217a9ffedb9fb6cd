// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/advice/hardware_type.h"

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

TEST_P(Detection, NamesTheChipThatTheDeviceSaysItIs) {
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

TEST(HardwareType, NamesGoBothWays) {
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

TEST(HardwareType, AValueOutsideTheEnumerationIsUnknown) {
  EXPECT_EQ(to_string(static_cast<HardwareType>(200)), "unknown");
}

}  // namespace
}  // namespace artifex_devices
