// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "artifex_devices/planner/step_planner.h"

namespace artifex_devices {

/// Every way to write `devices` as an ordered product of 1 to `most_axes` factors of 2 or more, fewest factors first;
/// (1) for one device. Example: 4 devices, 2 axes: (4), (2, 2).
std::vector<std::vector<int64_t>> mesh_shapes(int64_t devices, int most_axes);

/// What is searched: for each mesh, each of its axes may cut any set of the logical axes in `may_cut`.
struct SuggestionSpace {
  std::vector<PlacedMesh> meshes;
  std::vector<int> may_cut;
  bool overlaps = true;  // seconds are StepSeconds::overlapped(), else serial()
  int top = 5;
};

struct Suggested {
  size_t mesh = 0;  // of the space
  StepRules rules;  // for its axes
  StepSeconds seconds;
  double memory_bytes = 0;
};

/// Each mesh with rules is one option. Those whose rules do not fit the model (a dimension does not divide, two
/// dimensions of one tensor are cut by one axis) are not counted here: they are the rest of the space.
struct Suggestions {
  std::vector<Suggested> best;                 // that fit in memory
  std::optional<Suggested> fastest_too_large;  // of those that do not
  std::optional<Suggested> smallest;           // in memory, of all
  int64_t possible = 0;                        // whose rules fit, and whose collectives have a price
  int64_t too_large = 0;                       // of these: in memory
  int64_t without_network = 0;                 // a collective over groups that are no boxes of the cluster
};

/// How many sets of rules are looked at, meshes of the same sizes in any order together; those that are ruled out by
/// the size of one axis alone are not in it. What progress counts. Looks for interrupts.
int64_t count_of_candidates(const StepModel& model, const SuggestionSpace& space);

/// The best options, by an exhaustive search: nothing is left out but what cannot be, or cannot be among the best
/// whatever its collectives take. Better is: fewer seconds; of
/// equals (to 1 in 2^24) fewer by the other measure, overlapped or serial; then less memory, fewer axes of the mesh,
/// fewer cuts. Options that cut all logical axes the same number of ways by the same sets, on other meshes, are the
/// same to a user: the best one stands for them. `progress` gets the candidates done so far, of count_of_candidates().
/// Looks for interrupts. Throws InvalidArgument where there are more than `kMostCandidates`, Unavailable as
/// step_seconds does.
Suggestions suggest_steps(const StepModel& model, const Cluster& cluster, const SuggestionSpace& space,
                          const std::function<void(int64_t)>& progress = {});
inline constexpr int64_t kMostCandidates = 50'000'000;

}  // namespace artifex_devices
