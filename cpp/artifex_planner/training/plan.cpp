// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/training/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "artifex_devices/base/error.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_planner/training/memory.h"
#include "artifex_planner/training/model.h"
#include "artifex_planner/training/selective.h"

namespace artifex_devices::planner {

namespace {

/// FLOPs that recomputation adds to a step, divided by model_flops(): 1/3 if all layers are recomputed.
double recomputed_part(const TrainingModel& model, const TrainingConfig& config) noexcept {
  if (config.recompute == Recompute::kNone) return 0;
  if (config.recompute == Recompute::kFull) {
    if (config.recompute_layers < 0 || config.recompute_method == RecomputeMethod::kUniform) return 1.0 / 3;
    const double each = to_real(model.shape.layers) / to_real(config.pipeline);
    return std::min(1.0, to_real(config.recompute_layers) / each) / 3;
  }
  const double s = to_real(config.sequence);
  const double attention =
      2 * s * s * to_real(model.shape.layers * model.shape.heads) * (to_real(model.shape.head_dim) + model.value_dim);
  double again = config.flash_attention ? 0 : attention;
  if (recomputes_products(config)) again += s * recomputed_products_flops(model);
  return again / model_flops(model, 1, s);
}

}  // namespace

TrainingPlan plan_training(const TransformerShape& shape, const Cluster& cluster, const TrainingConfig& config,
                           const Efficiency& efficiency, int64_t devices) {
  const TrainingModel model = training_model(shape);
  std::string wrong = training_mistakes(shape, config, devices);
  if (devices > cluster.device_count()) {
    wrong += fmt::format("{}devices is {}, expected at most the cluster's {}", wrong.empty() ? "" : "; ", devices,
                         cluster.device_count());
  }
  if (config.sharp && !may_have_sharp(cluster)) {
    wrong += fmt::format("{}sharp is true and {} is a torus, expected nodes of GPUs, which InfiniBand may join",
                         wrong.empty() ? "" : "; ", cluster.name());
  }
  const std::string factors = efficiency_mistakes(efficiency);
  if (!factors.empty()) wrong += (wrong.empty() ? "" : "; ") + factors;
  if (!wrong.empty()) throw_error("plan_training: {}; correct the configuration", wrong);
  const TrainingHardware hardware = training_hardware(cluster);
  if ((config.offload_optimizer || config.offload_activations) && hardware.host_bandwidth <= 0) {
    throw_error<Unavailable>(
        "plan_training: the bandwidth between host and chip of {} is not known; expected it for offloading; give the "
        "cluster's chip a host_bandwidth",
        cluster.name());
  }
  TrainingLinks links(cluster);
  TrainingPlan plan;
  plan.devices = config.devices();
  plan.microbatches = config.microbatches();
  plan.roofline = training_seconds(model, config, hardware, links, ideal_efficiency());
  StepPricer pricer(model, hardware, links, efficiency);
  plan.expected = pricer.seconds(config);
  const StageSlots& slots = pricer.slots(config);
  std::vector<double> on_hosts;
  for (size_t i = 0; i < slots.stages.size(); ++i) {
    const StageHolds holds = stage_holds(model, config, slots.stages[i], static_cast<int64_t>(i));
    on_hosts.push_back(offloaded_bytes(holds, config));
    plan.stages.push_back({slots.stages[i].total(), std::llround(holds.parameters.total()), stage_memory(holds, config),
                           slots.slots[i].forward, slots.slots[i].backward, whole_bytes(on_hosts.back())});
    plan.memory = std::max(plan.memory, total(plan.stages.back().memory));
  }
  plan.reserved = reserved_bytes(plan.memory, config, hardware);
  plan.runtime = runtime_bytes(config, hardware);
  plan.available = hardware.device.memory_bytes;
  plan.host_memory = fullest_host(on_hosts, config, hardware);
  if (plan.host_memory > 0 && hardware.host_memory > 0) {
    plan.host_available = static_cast<int64_t>(hardware.host_memory);
  }
  plan.model_flops = model_flops(model, static_cast<double>(config.batch), static_cast<double>(config.sequence));
  plan.executed_flops = plan.model_flops * (1 + recomputed_part(model, config));
  plan.peak_flops = hardware.device.peak_flops[static_cast<size_t>(config.format)].value_or(0);
  plan.bubble_fraction =
      static_cast<double>(config.pipeline - 1) / static_cast<double>(config.chunks * config.microbatches());
  return plan;
}

}  // namespace artifex_devices::planner
