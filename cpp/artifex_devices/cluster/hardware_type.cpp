// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/cluster/hardware_type.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "artifex_devices/cluster/device_words.h"

namespace artifex_devices {
namespace {

constexpr std::array<std::string_view, kHardwareTypeCount> kHardwareNames = {"tpu_v5e", "tpu_v5p", "tpu_v4", "h100",
                                                                             "a100",    "v100",    "cpu",    "unknown"};

HardwareType detect_tpu(const std::vector<std::string>& words) {
  const auto has = [&](std::string_view word) { return std::find(words.begin(), words.end(), word) != words.end(); };
  // Google's v5e is named "TPU v5 lite", its v5p "TPU v5"; "TPU v4 lite" is v4i, which is not a v4.
  if (has("v5e") || has("v5litepod") || (has("v5") && has("lite"))) return HardwareType::kTpuV5e;
  if (has("v5p") || has("v5")) return HardwareType::kTpuV5p;
  if (has("v4") && !has("lite")) return HardwareType::kTpuV4;
  return HardwareType::kUnknown;
}

HardwareType detect_gpu(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (word == "h100") return HardwareType::kH100;
    if (word == "a100") return HardwareType::kA100;
    if (word == "v100" || word == "v100s") return HardwareType::kV100;
  }
  return HardwareType::kUnknown;
}

}  // namespace

std::string_view to_string(HardwareType type) noexcept {
  const auto index = static_cast<std::size_t>(type);
  return index < kHardwareNames.size() ? kHardwareNames[index] : kHardwareNames.back();
}

std::optional<HardwareType> hardware_type_from_name(std::string_view value) noexcept {
  const auto* found = std::find(kHardwareNames.begin(), kHardwareNames.end(), value);
  if (found == kHardwareNames.end()) return std::nullopt;
  return static_cast<HardwareType>(found - kHardwareNames.begin());
}

HardwareType detect_hardware_type(std::string_view platform, std::string_view device_kind) {
  const std::string name = lower_case(platform);
  if (name == "cpu") return HardwareType::kCpu;
  if (name == "tpu") return detect_tpu(words_of_kind(device_kind));
  if (name == "gpu" || name == "cuda") return detect_gpu(words_of_kind(device_kind));
  return HardwareType::kUnknown;
}

}  // namespace artifex_devices
