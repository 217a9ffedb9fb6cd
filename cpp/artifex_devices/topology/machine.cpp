// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/topology/machine.h"

#include <fmt/format.h>

#include <algorithm>

namespace artifex_devices {

std::string CpuSet::to_string() const {
  std::string text;
  for (size_t i = 0; i < cpus.size();) {
    size_t last = i;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
    if (!text.empty()) text += ',';
    text += last == i ? fmt::format("{}", cpus[i]) : fmt::format("{}-{}", cpus[i], cpus[last]);
    i = last + 1;
  }
  return text;
}

int64_t Machine::host_memory_bytes() const noexcept {
  int64_t bytes = 0;
  for (const NumaNode& node : numa_nodes()) {
    if (!node.is_gpu_memory()) bytes += std::min(node.memory_bytes, INT64_MAX - bytes);
  }
  return bytes;
}

}  // namespace artifex_devices
