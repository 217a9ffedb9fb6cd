// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "artifex_planner/training/memory.h"
#include "artifex_planner/training/seconds.h"

namespace artifex_devices::planner {

/// Bytes of one device of a stage in the memory of its host: optimizer state and gradients of what the device updates
/// (ZeRO-Offload, arXiv:2101.06840), and activations that wait for the backward pass.
double offloaded_bytes(const StageHolds& holds, const TrainingConfig& config) noexcept;

/// Bytes in the memory of the fullest host, for the bytes of a device of each stage. Hosts have consecutive devices; in
/// a torus, where they are blocks of it, all devices of a host count as those of the fullest stage.
/// Example: stages of 4 devices with 3 and 1 bytes each have 3 x 4 + 1 x 4 = 16 on a host of 8.
double fullest_host(const std::vector<double>& stages, const TrainingConfig& config, const TrainingHardware& hardware);

}  // namespace artifex_devices::planner
