// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/topology/machine.h"

#include <fmt/format.h>

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

}  // namespace artifex_devices
