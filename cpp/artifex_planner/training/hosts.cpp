// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "artifex_planner/training/memory.h"
#include "artifex_planner/training/model.h"

namespace artifex_devices::planner {

TrainingHardware training_hardware(const Cluster& cluster, std::string_view operation) {
  TrainingHardware hardware{device_rates(cluster, operation)};
  hardware.devices_per_host = cluster.chips_per_host() * cluster.chip().devices_per_chip;
  hardware.is_gpu = cluster.chip().platform == "gpu";
  hardware.is_tpu = cluster.chip().platform == "tpu";
  hardware.has_consecutive_hosts = cluster.inside().dims.size() == 1;
  if (const auto& memory = cluster.parts().host_memory) hardware.host_memory = memory->value;
  if (const auto& rate = cluster.chip().host_bandwidth) {
    hardware.host_bandwidth = rate->value / cluster.chip().devices_per_chip;
  }
  return hardware;
}

double offloaded_bytes(const StageHolds& holds, const TrainingConfig& config) noexcept {
  double sum = config.offload_activations ? holds.activations - holds.offloaded : 0;
  if (!config.offload_optimizer) return sum;
  const LocalParameters own = config.zero == 0 ? holds.parameters : owned_parameters(holds.parameters, config);
  const TensorNumbers& of_optimizer = optimizer_bytes(config.optimizer);
  for (size_t i = 0; i < own.counts.size(); ++i) sum += own.counts[i] * (of_optimizer[i] + config.gradient_bytes[i]);
  return sum;
}

int64_t fullest_host(const std::vector<double>& stages, const TrainingConfig& config,
                     const TrainingHardware& hardware) {
  const int64_t devices = config.devices();
  const int64_t of_host = std::min(hardware.devices_per_host, devices);
  if (!hardware.has_consecutive_hosts) return whole_bytes(to_real(of_host) * std::ranges::max(stages));
  const int64_t of_stage = devices / config.pipeline;
  const auto bytes_of = [&](int64_t host) {
    double sum = 0;
    for (int64_t id = host * of_host, end = std::min(id + of_host, devices); id < end;) {
      const int64_t stage = id / of_stage;
      const int64_t next = std::min(end, (stage + 1) * of_stage);
      sum += to_real(next - id) * stages[static_cast<size_t>(stage)];
      id = next;
    }
    return sum;
  };
  // The host of a stage's first device and the next one are as full as any host of this stage.
  double most = 0;
  for (int64_t stage = 0; stage < config.pipeline; ++stage) {
    const int64_t first = stage * of_stage / of_host;
    for (const int64_t host : {first, first + 1}) {
      if (host * of_host < devices) most = std::max(most, bytes_of(host));
    }
  }
  return whole_bytes(most);
}

}  // namespace artifex_devices::planner
