// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "artifex_planner/training/space.h"
#include "artifex_planner/training/time.h"

namespace artifex_devices::planner {

struct TrainingCandidate {
  TrainingConfig config;
  double seconds = 0;  // 0: not priced
  double memory = 0;   // bytes of a device of the fullest stage
  double host = 0;     // bytes of the fullest host
};

/// What a search found. `options` and `front` fit in memory.
struct TrainingSearch {
  std::vector<TrainingCandidate> options;  // fastest first
  std::vector<TrainingCandidate> front;    // none is better in seconds, memory and devices at once; fastest first
  std::vector<TrainingCandidate> nearest;  // where nothing fits: those that need the least of the limits, fullest last
  int64_t combinations = 0;                // all of the space
  int64_t consistent = 0;                  // that fit the model, the batch and the cluster
  int64_t too_large = 0;                   // do not fit in memory
  int64_t skipped = 0;                     // fit, but others are known to be better: see search_training()
  int64_t priced = 0;
};

/// Searches the whole space. Exact: a combination is skipped only where a lower bound of its seconds (its FLOPs at the
/// reached rate and the bubble of equal stages, or the seconds that ZeRO and offloading do not change) is not below the
/// seconds of options found already, and where it offloads although it fits without. `report(done)` is called for each
/// group, of count_of_groups(). Throws Unavailable where offloading is a choice and the link to the host is not known,
/// and Interrupted on Ctrl-C.
TrainingSearch search_training(const TrainingModel& model, const Cluster& cluster, const TrainingSpace& space,
                               const Efficiency& efficiency, const std::function<void(int64_t)>& report);

/// The consistent combination on so many devices that needs the least of the limits, without links or seconds; nothing
/// where none is consistent. Devices may be more than a cluster of these hosts has.
std::optional<TrainingCandidate> least_memory(const TrainingModel& model, const TrainingHardware& hardware,
                                              const TrainingSpace& space, int64_t devices);

}  // namespace artifex_devices::planner
