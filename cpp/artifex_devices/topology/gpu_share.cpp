// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/topology/gpu_share.h"

#include <algorithm>
#include <map>
#include <utility>

#include "artifex_devices/base/throw_error.h"

namespace artifex_devices {
namespace {

void check_chosen(const GpuPlace& place, size_t process) {
  const auto count = static_cast<int>(place.gpus.size());
  if (count == 0) {
    throw_error(
        "distributed.initialize: process {} sees no GPU; expected at least one, as JAX_PLATFORMS asks for GPUs; check "
        "CUDA_VISIBLE_DEVICES there, or leave JAX_PLATFORMS out",
        process);
  }
  if (!place.chosen) return;
  for (const int ordinal : *place.chosen) {
    if (ordinal >= 0 && ordinal < count) continue;
    throw_error(
        "distributed.initialize: local_device_ids names GPU {} in process {}; expected 0 to {}, the GPUs that it sees; "
        "correct it, or leave it out",
        ordinal, process, count - 1);
  }
}

}  // namespace

std::vector<std::vector<int>> plan_gpu_shares(const std::vector<GpuPlace>& places) {
  std::map<std::pair<std::string, std::vector<std::string>>, std::vector<size_t>> groups;  // processes that divide
  std::vector<std::vector<int>> shares(places.size());
  for (size_t process = 0; process < places.size(); ++process) {
    const GpuPlace& place = places[process];
    check_chosen(place, process);
    if (place.chosen) {
      shares[process] = *place.chosen;
    } else {
      groups[{place.machine, place.gpus}].push_back(process);
    }
  }
  for (const auto& [place, processes] : groups) {
    const size_t gpus = place.second.size();
    const size_t parts = processes.size();
    if (gpus < parts) {
      throw_error(
          "distributed.initialize: {} processes of one machine see {} GPU{}; expected at least as many GPUs; start "
          "fewer processes, or let them share GPUs by distributed.initialize(local_device_ids=0)",
          parts, gpus, gpus == 1 ? "" : "s");
    }
    int next = 0;
    for (size_t part = 0; part < parts; ++part) {
      for (size_t n = gpus / parts + (part < gpus % parts ? 1 : 0); n > 0; --n) {
        shares[processes[part]].push_back(next++);
      }
    }
  }
  return shares;
}

std::vector<SharedGpu> shared_gpus(const std::vector<GpuPlace>& places, const std::vector<std::vector<int>>& shares) {
  std::map<std::pair<std::string, std::string>, SharedGpu> all;  // by machine and address
  for (size_t process = 0; process < places.size(); ++process) {
    for (const int ordinal : shares[process]) {
      const std::string& gpu = places[process].gpus[static_cast<size_t>(ordinal)];
      SharedGpu& found = all[{places[process].machine, gpu}];
      found.gpu = gpu;
      found.processes.push_back(static_cast<int>(process));
    }
  }
  std::vector<SharedGpu> shared;
  for (auto& [place, gpu] : all) {
    if (gpu.processes.size() > 1) shared.push_back(std::move(gpu));
  }
  std::ranges::sort(shared, {}, [](const SharedGpu& gpu) { return std::pair(gpu.processes, gpu.gpu); });
  return shared;
}

}  // namespace artifex_devices
