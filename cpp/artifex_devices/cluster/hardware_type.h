// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace artifex_devices {

/// Hardware types of the batch-size table; values as in the documents, lower case.
enum class HardwareType : uint8_t { kTpuV5e, kTpuV5p, kTpuV4, kH100, kA100, kV100, kCpu, kUnknown };
inline constexpr int kHardwareTypeCount = 8;

std::string_view to_string(HardwareType type) noexcept;  // "tpu_v5e" ... "cpu", "unknown"
std::optional<HardwareType> hardware_type_from_name(std::string_view value) noexcept;

/// Returns the type for a device's platform and kind strings, ignoring case. Unlike in the original, chips that are not
/// in the table are unknown, not mapped to a similar chip: "TPU v5" and "TPU v5p" are v5p, "TPU v5 lite" and "v5e" are
/// v5e, "TPU v6 lite" is unknown; "NVIDIA H100 80GB HBM3" is H100, H200, T4 and "RTX A1000" are unknown.
HardwareType detect_hardware_type(std::string_view platform, std::string_view device_kind);

}  // namespace artifex_devices
