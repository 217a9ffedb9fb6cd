// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "artifex_planner/step/cost.h"
#include "artifex_planner/training/efficiency.h"
#include "artifex_planner/training/links.h"
#include "artifex_planner/training/memory.h"

namespace artifex_devices::planner {

/// The parts of a step, in the order of a waterfall. Communication counts here as far as it is not hidden.
enum class TimePart : uint8_t {
  kProducts,
  kAttention,
  kElementwise,
  kRecompute,
  kTensor,
  kContext,
  kExpert,
  kPipeline,
  kBubble,
  kData,
  kOffload,
  kUpdate,
  kFixed
};
inline constexpr int kTimePartCount = 13;
std::string_view to_string(TimePart part) noexcept;  // "products", "attention", "elementwise", ...

/// Seconds of one step.
struct TrainingSeconds {
  std::array<double, kTimePartCount> parts{};  // exposed: they sum to the step
  std::array<double, kTrafficCount> hidden{};  // behind computation
  std::vector<double> forward;                 // of a microbatch, for each stage
  std::vector<double> backward;                // the same, recomputation included
  double total() const noexcept;
  double& operator[](TimePart part) noexcept { return parts[static_cast<size_t>(part)]; }
  double operator[](TimePart part) const noexcept { return parts[static_cast<size_t>(part)]; }
};

/// One device of a cluster and its host.
struct TrainingHardware {
  StepHardware device;
  double host_bandwidth = 0;  // bytes/s; 0 where not known
  double host_memory = 0;     // bytes of a host; 0 where not known
  int64_t devices_per_host = 1;
  bool has_consecutive_hosts = true;  // devices of a host have consecutive ids
};
TrainingHardware training_hardware(const Cluster& cluster);

/// Seconds of a step. Stages run at once; the slowest sets the pace, and the bubble is the time for which it waits
/// ((p - 1) / v microbatches where stages are equal; Narayanan et al. 2021, arXiv:2104.04473). Throws Unavailable for a
/// format without a published peak, and InvalidArgument where ranks are not a box of the cluster.
TrainingSeconds training_seconds(const TrainingModel& model, const TrainingConfig& config,
                                 const TrainingHardware& hardware, TrainingLinks& links, const Efficiency& efficiency);

/// FLOPs of a step that recomputation adds, over those of model_flops(): 1/3 where all layers are recomputed.
double recomputed_part(const TrainingModel& model, const TrainingConfig& config) noexcept;

}  // namespace artifex_devices::planner
