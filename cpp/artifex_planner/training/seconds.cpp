// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/training/seconds.h"

#include <algorithm>
#include <numeric>

#include "artifex_planner/training/real.h"
#include "artifex_planner/training/step.h"

namespace artifex_devices::planner {
namespace {

constexpr std::array<std::string_view, kTimePartCount> kTimeNames = {
    "products", "attention", "elementwise", "recompute", "tensor", "context", "expert",
    "pipeline", "bubble",    "data",        "offload",   "update", "fixed"};

}  // namespace

std::string_view to_string(TimePart part) noexcept { return kTimeNames[static_cast<size_t>(part)]; }

double TrainingSeconds::total() const noexcept { return std::accumulate(parts.begin(), parts.end(), 0.0); }

TrainingHardware training_hardware(const Cluster& cluster) {
  TrainingHardware hardware{step_hardware(cluster, "plan_training")};
  hardware.devices_per_host = cluster.chips_per_host() * cluster.chip().devices_per_chip;
  hardware.has_consecutive_hosts = cluster.inside().dims.size() == 1;
  if (const auto& memory = cluster.parts().host_memory) hardware.host_memory = memory->value;
  if (const auto& rate = cluster.chip().host_bandwidth) {
    hardware.host_bandwidth = rate->value / cluster.chip().devices_per_chip;
  }
  return hardware;
}

TrainingSeconds training_seconds(const TrainingModel& model, const TrainingConfig& config,
                                 const TrainingHardware& hardware, TrainingLinks& links, const Efficiency& efficiency) {
  StepPricer pricer(model, hardware, links, efficiency);
  TrainingSeconds step = pricer.seconds(config);
  for (const StageSlot& slot : pricer.slots(config).slots) {
    step.forward.push_back(slot.forward);
    step.backward.push_back(slot.backward);
  }
  return step;
}

double recomputed_part(const TrainingModel& model, const TrainingConfig& config) noexcept {
  if (config.recompute == Recompute::kNone || (config.recompute == Recompute::kSelective && config.flash_attention)) {
    return 0;
  }
  if (config.recompute == Recompute::kFull) {
    if (config.recompute_layers < 0 || config.recompute_method == RecomputeMethod::kUniform) return 1.0 / 3;
    const double each = to_real(model.shape.layers) / to_real(config.pipeline);
    return std::min(1.0, to_real(config.recompute_layers) / each) / 3;
  }
  const double s = to_real(config.sequence);
  const double attention =
      2 * s * s * to_real(model.shape.layers * model.shape.heads) * (to_real(model.shape.head_dim) + model.value_dim);
  return attention / model_flops(model, 1, s);
}

}  // namespace artifex_devices::planner
