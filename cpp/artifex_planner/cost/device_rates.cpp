// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/cost/device_rates.h"

#include "artifex_devices/base/throw_error.h"

namespace artifex_devices::planner {

double DeviceRates::peak(MatmulFormat format) const {
  const std::optional<double>& published = peak_flops[static_cast<size_t>(format)];
  if (!published) {
    throw_error<Unavailable>(
        "{}: no source publishes FLOP/s of {} for this chip; expected a format with a published number; give the "
        "operations another dtype, or a cluster with this figure",
        operation, to_string(format));
  }
  return *published;
}

DeviceRates device_rates(const Cluster& cluster, std::string_view operation) {
  const ClusterChip& chip = cluster.chip();
  const auto share = static_cast<double>(chip.devices_per_chip);
  if (!chip.memory_bandwidth || !cluster.device_memory_bytes()) {
    throw_error<Unavailable>(
        "{}: the {} of {} in the cluster {} is not known; expected a figure; give it in a cluster file", operation,
        chip.memory_bandwidth ? "memory" : "memory bandwidth", chip.name, cluster.name());
  }
  DeviceRates rates;
  rates.operation = operation;
  for (size_t format = 0; format < rates.peak_flops.size(); ++format) {
    if (chip.peak_flops[format]) rates.peak_flops[format] = chip.peak_flops[format]->value / share;
  }
  rates.memory_bandwidth = chip.memory_bandwidth->value / share;
  rates.memory_bytes = *cluster.device_memory_bytes();
  return rates;
}

}  // namespace artifex_devices::planner
