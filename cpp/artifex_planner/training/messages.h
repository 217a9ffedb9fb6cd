// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "artifex_planner/cost/efficiency.h"
#include "artifex_planner/training/config.h"
#include "artifex_planner/training/links.h"
#include "artifex_planner/training/model.h"

namespace artifex_devices::planner {

/// The messages of a step that plan_training prices, of a device of the slowest stage: forward passes first, then
/// backward passes, what is computed again, messages between stages, gradients and parameters. Equal messages are one,
/// with their counts added. Throws Unavailable and InvalidArgument like plan_training; the configuration is consistent.
/// Example: with ZeRO 3 on 8 devices, 4 layers of 1e6 parameters in float32 and one microbatch, 8 all-gathers that send
/// 3.5e6 bytes each and 4 reduce-scatters of as many.
std::vector<TrainingMessage> training_messages(const TransformerShape& shape, const Cluster& cluster,
                                               const TrainingConfig& config, const Efficiency& efficiency);

}  // namespace artifex_devices::planner
