// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace artifex_devices {

/// Returns the bytes of "MemTotal:" or "MemFree:" in /sys/devices/system/node/nodeN/meminfo; 0 if unreadable.
int64_t node_meminfo_bytes(const std::string& path, const std::string& key);

/// Returns the sum of "MemTotal:" or "MemFree:" over the memory nodes that are memory of NVIDIA GPUs (POWER9, Grace),
/// as their driver lists them under `root`. /proc/meminfo counts them as memory of the system.
int64_t gpu_node_bytes(const std::string& key, const std::string& root = "");

}  // namespace artifex_devices
