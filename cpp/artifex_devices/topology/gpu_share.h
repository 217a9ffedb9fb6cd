// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace artifex_devices {

/// The GPUs that a process sees, and the GPUs that its caller has chosen.
struct GpuPlace {
  std::string machine;
  std::vector<std::string> gpus;                          // PCI addresses, by ordinal
  std::optional<std::vector<int>> chosen = std::nullopt;  // ordinals; nothing: its share
};

/// Returns the ordinals of the GPUs that each process uses. A process with a choice uses its chosen GPUs. The other
/// processes of a machine that see the same GPUs divide them equally, in order of their numbers: with 8 GPUs, processes
/// 0 and 1 of 2 get 0 to 3 and 4 to 7. The first processes get the remaining GPUs. Throws InvalidArgument if a process
/// sees no GPU, has chosen a GPU that it does not see, or would get no GPU.
///
///     plan_gpu_shares({{"a", {"x", "y"}}, {"a", {"x", "y"}}});  // {0}, {1}
std::vector<std::vector<int>> plan_gpu_shares(const std::vector<GpuPlace>& places);

/// A GPU that several processes use.
struct SharedGpu {
  std::string gpu;             // PCI address
  std::vector<int> processes;  // ascending
};

/// Returns the GPUs that several processes use, ordered by their first process.
std::vector<SharedGpu> shared_gpus(const std::vector<GpuPlace>& places, const std::vector<std::vector<int>>& shares);

}  // namespace artifex_devices
