// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace artifex_devices {

/// Returns the sum of "MemTotal:" or "MemFree:" over the memory nodes that are memory of NVIDIA GPUs (POWER9, Grace),
/// as their driver lists them under `root`. /proc/meminfo counts them as memory of the system. Throws as
/// read_kernel_file.
int64_t gpu_node_bytes(std::string_view key, const std::string& root = "");

}  // namespace artifex_devices
