// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "artifex_planner/training/pass.h"

namespace artifex_devices::planner {

/// Communication and how much of it computation hides.
struct HiddenSeconds {
  double exposed = 0;
  double hidden = 0;
};
/// Hides `part` of some seconds behind a window of computation.
HiddenSeconds hide(double seconds, double part, double window) noexcept;

/// One microbatch of one stage, forward and backward.
struct StageSlot {
  TrainingSeconds time;               // parts of one microbatch
  std::array<PassSeconds, 3> passes;  // forward, backward and what is computed again
  double sends = 0;                   // messages between stages, forward and backward
  double forward = 0;
  double backward = 0;
  double total() const noexcept { return forward + backward; }
};

/// Slots of all stages, and the parts of a step that follow from them: all but data, offload and update.
struct StageSlots {
  std::vector<StageLayers> stages;
  std::vector<size_t> like;  // for each stage the first one with the same layers
  std::vector<StageSlot> slots;
  TrainingSeconds step;
};

/// Prices slots. Consecutive configurations that share the passes of a layer, or all slots, reuse them.
class SlotPricer {
 public:
  SlotPricer(const TrainingModel& model, const TrainingHardware& hardware, TrainingLinks& links,
             const Efficiency& efficiency);

  /// The slots of a configuration; valid until the next call.
  const StageSlots& slots(const TrainingConfig& config);

 private:
  struct Passes {
    std::array<std::array<PassSeconds, 2>, 2> layers{};  // by kind, then forward and backward
    std::array<PassSeconds, 2> embedding{};
    std::array<PassSeconds, 2> head{};
  };
  void price_passes(const TrainingConfig& config);
  StageSlot slot(const TrainingConfig& config, const StageLayers& layers, double send) const;
  PassSeconds pass(const StageLayers& layers, bool is_backward) const;

  const TrainingModel& model_;
  const TrainingHardware& hardware_;
  TrainingLinks& links_;
  const Efficiency& efficiency_;
  std::optional<TrainingConfig> passes_of_;  // what the passes depend on
  std::optional<TrainingConfig> slots_of_;
  Passes passes_;
  StageSlots found_;
};

}  // namespace artifex_devices::planner
