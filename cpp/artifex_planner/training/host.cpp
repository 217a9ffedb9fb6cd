// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/training/host.h"

#include <algorithm>

#include "artifex_planner/training/real.h"

namespace artifex_devices::planner {

double offloaded_bytes(const StageHolds& holds, const TrainingConfig& config) noexcept {
  double sum = config.offload_activations ? holds.activations - holds.offloaded : 0;
  if (!config.offload_optimizer) return sum;
  const LocalParameters own = config.zero == 0 ? holds.parameters : owned_parameters(holds.parameters, config);
  for (size_t i = 0; i < own.counts.size(); ++i) {
    const double state = optimizer_bytes(config.optimizer, static_cast<TensorKind>(i));
    sum += own.counts[i] * (state + config.gradient_bytes[i]);
  }
  return sum;
}

double fullest_host(const std::vector<double>& stages, const TrainingConfig& config, const TrainingHardware& hardware) {
  const int64_t devices = config.devices();
  const int64_t of_host = std::min(hardware.devices_per_host, devices);
  if (!hardware.has_consecutive_hosts) return to_real(of_host) * std::ranges::max(stages);
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
  return most;
}

}  // namespace artifex_devices::planner
