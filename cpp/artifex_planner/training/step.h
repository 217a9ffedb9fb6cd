// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "artifex_planner/training/slots.h"

namespace artifex_devices::planner {

/// What a device of one stage does in a step, hidden or not. Passes and sends are those of one microbatch.
struct StageWork {
  std::array<PassSeconds, 3> passes;  // forward, backward and what is computed again
  double sends = 0;
  double data = 0;
  double update = 0;
  double offload = 0;
};

/// Prices steps of one model on one cluster. Consecutive configurations that share parts of a step reuse their prices,
/// so a search that varies ZeRO, the optimizer and offloading last is fast. Not thread-safe.
class StepPricer {
 public:
  StepPricer(const TrainingModel& model, const TrainingHardware& hardware, TrainingLinks& links,
             const Efficiency& efficiency);

  /// What training_seconds() returns, without the seconds of each stage.
  TrainingSeconds seconds(const TrainingConfig& config);
  /// The part of it that ZeRO, the optimizer and offloading do not change: no step takes less.
  double least_seconds(const TrainingConfig& config);
  StageWork work(const TrainingConfig& config, int64_t stage);
  /// Slots of the configuration that was priced last.
  const StageSlots& slots(const TrainingConfig& config) { return slots_.slots(config); }

 private:
  /// Gradients and parameters between replicas, for the whole step.
  HiddenSeconds data(const TrainingConfig& config, const StageLayers& layers, const StageSlot& slot);
  double update(const TrainingConfig& config, const StageLayers& layers) const;
  HiddenSeconds offload(const TrainingConfig& config, const StageLayers& layers, const StageSlot& slot,
                        int64_t stage) const;
  /// Parameters whose states a device updates.
  LocalParameters owned(const TrainingConfig& config, const StageLayers& layers) const;

  const TrainingModel& model_;
  const TrainingHardware& hardware_;
  TrainingLinks& links_;
  const Efficiency& efficiency_;
  SlotPricer slots_;
};

}  // namespace artifex_devices::planner
