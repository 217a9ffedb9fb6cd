// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/training/messages.h"

#include <algorithm>

#include "artifex_planner/training/time.h"

namespace artifex_devices::planner {

std::vector<TrainingMessage> training_messages(const TransformerShape& shape, const Cluster& cluster,
                                               const TrainingConfig& config, const Efficiency& efficiency) {
  const TrainingModel model = training_model(shape);
  const TrainingHardware hardware = training_hardware(cluster);
  TrainingLinks links(cluster);
  links.list_messages();
  StepPricer pricer(model, hardware, links, efficiency);
  const std::vector<StageSlot>& slots = pricer.slots(config).slots;
  const auto slowest = std::ranges::max_element(slots, {}, &StageSlot::total);
  return pricer.work(config, slowest - slots.begin()).messages;
}

}  // namespace artifex_devices::planner
