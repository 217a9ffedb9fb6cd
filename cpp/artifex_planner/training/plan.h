// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "artifex_planner/training/time.h"

namespace artifex_devices::planner {

/// One pipeline stage of a plan: bytes and parameters of each of its devices.
struct TrainingStage {
  StageLayers layers;
  StageMemory memory{};
  double parameters = 0;
  double host = 0;  // bytes of each device in the memory of its host
};

/// A training run on a cluster.
struct TrainingPlan {
  TrainingConfig config;
  std::vector<TrainingStage> stages;
  TrainingSeconds roofline;    // published rates, the configured overlap
  TrainingSeconds expected;    // with the factors of efficiency
  double model_flops = 0;      // of a step, as publications count them
  double executed_flops = 0;   // the same with recomputation
  double peak_flops = 0;       // FLOP/s of a device in the configured format
  double available = 0;        // bytes of a device
  double bubble_fraction = 0;  // of ideal pipelines: (p - 1) / (v m)
  double host_memory = 0;      // bytes in the memory of the fullest host; 0 where nothing is offloaded
};

/// Plans one step on the first `devices` of a cluster. Throws InvalidArgument with all mistakes of the configuration,
/// Unavailable for rates that are not known.
TrainingPlan plan_training(const TransformerShape& shape, const Cluster& cluster, const TrainingConfig& config,
                           const Efficiency& efficiency, int64_t devices);

/// The same on all devices of the cluster.
inline TrainingPlan plan_training(const TransformerShape& shape, const Cluster& cluster, const TrainingConfig& config,
                                  const Efficiency& efficiency) {
  return plan_training(shape, cluster, config, efficiency, cluster.device_count());
}

}  // namespace artifex_devices::planner
