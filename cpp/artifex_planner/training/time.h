// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "artifex_planner/cost/efficiency.h"
#include "artifex_planner/training/links.h"
#include "artifex_planner/training/memory.h"
#include "artifex_planner/training/pass.h"

namespace artifex_devices::planner {

/// The parts of a step, in the order of a waterfall. Only exposed communication counts here.
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
template <>
inline constexpr std::array<std::string_view, 13> kKindNames<TimePart>{
    "products", "attention", "elementwise", "recompute", "tensor", "context", "expert",
    "pipeline", "bubble",    "data",        "offload",   "update", "fixed"};

/// Seconds of one step.
struct TrainingSeconds {
  std::array<double, kTimePartCount> parts{};  // exposed: they sum to the step
  std::array<double, kTrafficCount> hidden{};  // behind computation
  double total() const noexcept;
  double& operator[](TimePart part) noexcept { return parts[static_cast<size_t>(part)]; }
  double operator[](TimePart part) const noexcept { return parts[static_cast<size_t>(part)]; }
};

void visit_fields(FieldsOf<TrainingSeconds> auto& seconds, const auto& visit) {
  visit("parts", by_kind<TimePart>(seconds.parts));
  visit("hidden", by_kind<Traffic>(seconds.hidden));
  visit("total", seconds.total());
}

/// Seconds of a step. Stages run in parallel; the slowest sets the pace, and the bubble is the time that it waits
/// ((p - 1) / v microbatches if stages are equal; Narayanan et al. 2021, arXiv:2104.04473). Throws Unavailable for a
/// format without a published peak, and InvalidArgument where ranks are not a box of the cluster.
TrainingSeconds training_seconds(const TrainingModel& model, const TrainingConfig& config,
                                 const TrainingHardware& hardware, TrainingLinks& links, const Efficiency& efficiency);

/// Communication and how much of it computation hides.
struct HiddenSeconds {
  double exposed = 0;
  double hidden = 0;
};
/// Hides `part` of some seconds behind a window of computation.
HiddenSeconds hide(double seconds, double part, double window) noexcept;

/// Gradients and parameters between replicas in a step.
struct ExchangedSeconds {
  HiddenSeconds seconds;
  std::vector<TrainingMessage> messages;  // where the links list them
};

/// One microbatch of one stage, forward and backward.
struct StageSlot {
  TrainingSeconds time;               // parts of one microbatch
  std::array<PassSeconds, 3> passes;  // forward, backward and what is computed again
  double sends = 0;                   // messages between stages, forward and backward
  double forward = 0;
  double backward = 0;
  double total() const noexcept { return forward + backward; }
};

/// Slots of all stages, and the parts of a step that follow from them: all except data, offload and update.
struct StageSlots {
  std::vector<StageLayers> stages;
  std::vector<size_t> like;  // for each stage, the first stage with the same layers
  std::vector<StageSlot> slots;
  std::vector<TrainingMessage> sends;  // of one microbatch in one direction, where the links list them
  TrainingSeconds step;
};

/// Seconds of each kind of work of one device of a stage in a step, whether hidden or not. `passes` and `sends` are per
/// microbatch.
struct StageWork {
  std::array<PassSeconds, 3> passes;  // forward, backward and what is computed again
  double sends = 0;
  double data = 0;
  double update = 0;
  double offload = 0;
  std::vector<TrainingMessage> messages{};  // of all microbatches, where the links list them
};

/// Estimates steps of one model on one cluster. Consecutive configurations that share parts of a step reuse their
/// estimates, so a search that varies ZeRO, the optimizer and offloading last is fast. Not thread-safe.
class StepPricer {
 public:
  StepPricer(const TrainingModel& model, const TrainingHardware& hardware, TrainingLinks& links,
             const Efficiency& efficiency);

  /// Returns the result of training_seconds().
  TrainingSeconds seconds(const TrainingConfig& config);
  /// The part of the step that does not depend on ZeRO, the optimizer and offloading: a lower bound of its seconds.
  double least_seconds(const TrainingConfig& config) { return slots(config).step.total(); }
  StageWork work(const TrainingConfig& config, int64_t stage);
  /// The slots of a configuration; valid until the next call.
  const StageSlots& slots(const TrainingConfig& config);

 private:
  struct Passes {
    std::array<std::array<PassSeconds, 2>, 2> layers{};  // by kind, then forward and backward
    std::array<PassSeconds, 2> embedding{};
    std::array<PassSeconds, 2> head{};
  };
  void price_passes(const TrainingConfig& config);
  PassSeconds pass(const StageLayers& layers, bool is_backward) const;
  StageSlot slot(const TrainingConfig& config, const StageLayers& layers, double send) const;
  ExchangedSeconds data(const TrainingConfig& config, const StageLayers& layers, const StageSlot& slot);
  double update(const TrainingConfig& config, const StageLayers& layers) const;
  HiddenSeconds offload(const TrainingConfig& config, const StageLayers& layers, const StageSlot& slot,
                        int64_t stage) const;
  /// Parameters whose states a device updates.
  LocalParameters owned(const TrainingConfig& config, const StageLayers& layers) const;

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
