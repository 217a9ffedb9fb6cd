// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "artifex_devices/topology/machine.h"

namespace artifex_devices {

/// A device with its own memory, as described to other processes.
struct DeviceFacts {
  std::string kind;  // "NVIDIA H100 80GB HBM3"
  std::optional<int64_t> memory_bytes = std::nullopt;

  friend bool operator==(const DeviceFacts&, const DeviceFacts&) = default;
};

/// One of the processes that share a world. Created by Client::describe in that process.
struct ProcessInfo {
  std::string host;  // processes with equal names are on one machine
  int64_t num_devices = 0;
  std::vector<CpuDomain> domains;           // domains of its devices, in order; at least one
  std::vector<int64_t> arena_memory_bytes;  // bytes of each memory, in the order in which domains name them
  std::vector<DeviceFacts> devices = {};    // in order; empty for devices that share the memories of the domains

  friend bool operator==(const ProcessInfo&, const ProcessInfo&) = default;
};

}  // namespace artifex_devices
