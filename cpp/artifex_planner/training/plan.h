// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "artifex_planner/training/reserved.h"
#include "artifex_planner/training/time.h"

namespace artifex_devices::planner {

/// One pipeline stage of a plan: bytes and parameters per device.
struct TrainingStage {
  int64_t layers = 0;
  int64_t parameters = 0;  // before ZeRO shards them
  StageMemory memory{};
  double forward = 0;   // expected seconds of a microbatch, exposed communication included
  double backward = 0;  // the same, recomputation included
  int64_t host = 0;     // bytes of each device in the memory of its host
};
void visit_fields(FieldsOf<TrainingStage> auto& stage, const auto& visit) {
  visit("layers", stage.layers);
  visit("parameters_held", stage.parameters);
  for (size_t i = 0; i < stage.memory.size(); ++i) visit(kKindNames<MemoryPart>[i].data(), stage.memory[i]);
  visit("forward", stage.forward);
  visit("backward", stage.backward);
  visit("host", stage.host);
  visit("total", total(stage.memory));
}

/// A training run on a cluster.
struct TrainingPlan {
  int64_t devices = 1;
  int64_t microbatches = 1;  // of each replica in a step
  std::vector<TrainingStage> stages;
  TrainingSeconds roofline;               // published rates, the configured overlap
  TrainingSeconds expected;               // with the factors of efficiency
  double model_flops = 0;                 // of a step, as publications count them
  double executed_flops = 0;              // the same with recomputation
  double peak_flops = 0;                  // FLOP/s of a device in the configured format
  double bubble_fraction = 0;             // of ideal pipelines: (p - 1) / (v m)
  int64_t memory = 0;                     // bytes that the program allocates on a device of the fullest stage
  int64_t reserved = 0;                   // bytes that its allocator takes for them
  int64_t runtime = 0;                    // further bytes of that device: the runtime and communicators
  int64_t available = 0;                  // bytes of a device
  int64_t host_memory = 0;                // bytes in the memory of the fullest host; 0 where nothing is offloaded
  std::optional<int64_t> host_available;  // bytes of a host, where something is offloaded and they are known

  /// Bytes that a device must have.
  int64_t needed() const noexcept { return reserved + runtime; }
};
void visit_fields(FieldsOf<TrainingPlan> auto& plan, const auto& visit) {
  visit("devices", plan.devices);
  visit("microbatches", plan.microbatches);
  visit("stages", plan.stages);
  visit("roofline", plan.roofline);
  visit("expected", plan.expected);
  visit("model_flops", plan.model_flops);
  visit("executed_flops", plan.executed_flops);
  visit("peak_flops", plan.peak_flops);
  visit("bubble_fraction", plan.bubble_fraction);
  visit("memory", plan.memory);
  visit("reserved", plan.reserved);
  visit("runtime", plan.runtime);
  visit("available", plan.available);
  visit("close", is_close(plan.needed(), plan.available));
  visit("host_memory", plan.host_memory);
  visit("host_available", plan.host_available);
}

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
