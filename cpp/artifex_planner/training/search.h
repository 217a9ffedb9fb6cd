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
  int64_t memory = 0;  // bytes that the program allocates on a device of the fullest stage
  int64_t needed = 0;  // bytes that the device must have
  int64_t host = 0;    // bytes of the fullest host
  int64_t row = 0;     // of an option: see number_rows()
};
void visit_fields(FieldsOf<TrainingCandidate> auto& candidate, const auto& visit) {
  visit("config", candidate.config);
  visit("devices", candidate.config.devices());
  visit("seconds", candidate.seconds);
  visit("memory", candidate.memory);
  visit("needed", candidate.needed);
  visit("host", candidate.host);
  visit("row", candidate.row);
}
/// Whether it needs no more than the limits of a space.
bool fits(const TrainingCandidate& candidate, const TrainingSpace& space) noexcept;

/// Numbers the rows of a table of candidates. Candidates that differ by nothing that matters share a row: they have as
/// many devices and the same optimizer as the first candidate of the row, its seconds within 1 %, and its bytes of a
/// device and of a host within 2 %.
void number_rows(std::vector<TrainingCandidate>& candidates);

/// Results of a search. `options` and `front` fit in memory.
struct TrainingSearch {
  std::vector<TrainingCandidate> options;  // fastest first, with their rows
  std::vector<TrainingCandidate> front;    // Pareto front of seconds, memory and devices; fastest first
  std::vector<TrainingCandidate> nearest;  // if nothing fits: candidates that exceed the limits least, fullest last
  int64_t combinations = 0;                // size of the space
  int64_t consistent = 0;                  // combinations that fit the model, the batch and the cluster
  int64_t too_large = 0;                   // do not fit in memory
  int64_t skipped = 0;                     // fit, but are known not to be the best: see search_training()
  int64_t priced = 0;
};
void visit_fields(FieldsOf<TrainingSearch> auto& search, const auto& visit) {
  visit("options", search.options);
  visit("front", search.front);
  visit("nearest", search.nearest);
  visit("combinations", search.combinations);
  visit("consistent", search.consistent);
  visit("too_large", search.too_large);
  visit("skipped", search.skipped);
  visit("priced", search.priced);
}

/// Searches the whole space. Exact: a combination is skipped only where a lower bound of its seconds (its FLOPs at the
/// reached rate and the bubble of equal stages, or the seconds that ZeRO and offloading do not change) is not below the
/// seconds of options found already, and where it offloads although it fits without. `report(done)` is called for each
/// group, of count_of_groups(). Throws Unavailable where offloading is a choice and the link to the host is not known,
/// and Interrupted on Ctrl-C.
TrainingSearch search_training(const TrainingModel& model, const Cluster& cluster, const TrainingSpace& space,
                               const Efficiency& efficiency, const std::function<void(int64_t)>& report);

/// Returns the consistent combination on `devices` devices that needs the smallest fraction of the limits; links and
/// seconds are not considered. Returns nothing if no combination is consistent. `devices` may exceed the size of the
/// cluster.
std::optional<TrainingCandidate> least_memory(const TrainingModel& model, const TrainingHardware& hardware,
                                              const TrainingSpace& space, int64_t devices);

}  // namespace artifex_devices::planner
