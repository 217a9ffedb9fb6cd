// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "artifex_devices/planner/training_seconds.h"

namespace artifex_devices {

/// The choices that a search combines. Every combination that is consistent is considered.
struct TrainingSpace {
  TrainingConfig base;           // batch, sequence and all that is not chosen
  std::vector<int64_t> devices;  // numbers of devices: the first ids of the cluster
  std::vector<int64_t> tensor, context, pipeline, chunks, expert, microbatch, zero_shards;
  std::vector<int> zero;
  std::vector<Recompute> recompute;
  std::vector<double> recompute_parts;  // of a stage's layers, for full recomputation: 1 is all
  double memory_limit = 0;              // bytes of a device
  size_t top = 5;
};

struct TrainingCandidate {
  TrainingConfig config;
  double seconds = 0;  // 0: not priced
  double memory = 0;   // of the fullest stage
};

/// What a search found. `options` and `front` fit in memory.
struct TrainingSearch {
  std::vector<TrainingCandidate> options;  // fastest first
  std::vector<TrainingCandidate> front;    // none is better in seconds, memory and devices at once; fastest first
  std::vector<TrainingCandidate> nearest;  // where nothing fits: those that need the least memory, fullest last
  int64_t combinations = 0;                // all of the space
  int64_t consistent = 0;                  // that fit the model, the batch and the cluster
  int64_t too_large = 0;                   // do not fit in memory
  int64_t skipped = 0;                     // fit, but a bound shows that others are better
  int64_t priced = 0;
};

/// Number of combinations of pipelines, tensor and context ways: what `report` counts up to.
int64_t count_of_groups(const TrainingSpace& space) noexcept;

/// Searches the whole space. Exact: a combination is skipped only where a lower bound of its seconds (its FLOPs at the
/// reached rate, and the bubble of equal stages) is above the seconds of options found already. `report(done)` is
/// called for each group. Throws Interrupted on Ctrl-C.
TrainingSearch search_training(const TrainingModel& model, const Cluster& cluster, const TrainingSpace& space,
                               const Efficiency& efficiency, const std::function<void(int64_t)>& report);

/// The smallest memory of any consistent combination on so many devices, without links or seconds; nothing where none
/// is consistent. Devices may be more than a cluster has.
std::optional<TrainingCandidate> least_memory(const TrainingModel& model, const TrainingSpace& space, int64_t devices);

}  // namespace artifex_devices
