// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "artifex_planner/step/plan.h"

namespace artifex_devices::planner {

/// Every way to write `devices` as an ordered product of 1 to `most_axes` factors of 2 or more, fewest factors first;
/// (1) for one device. Example: 4 devices, 2 axes: (4), (2, 2).
std::vector<std::vector<int64_t>> mesh_shapes(int64_t devices, int most_axes);

/// The options of a search: each axis of each mesh may shard any set of the logical axes in `shardable`.
struct SuggestionSpace {
  std::vector<ClusterMesh> meshes;
  std::vector<int> shardable;
  bool overlaps = true;  // seconds are ExpectedStep::overlapped(), else serial()
  int top = 5;
};

struct Suggested {
  size_t mesh = 0;  // of the space
  StepRules rules;  // for its axes
  ExpectedStep expected;
  double memory_bytes = 0;
};

/// Each mesh with rules is one option. Options whose rules do not fit the model (a dimension does not divide, one axis
/// shards two dimensions of a tensor) are not counted here: they are the rest of the space.
struct Suggestions {
  std::vector<Suggested> best;                 // options that fit in memory
  std::optional<Suggested> fastest_too_large;  // fastest option that does not fit
  std::optional<Suggested> smallest;           // option with the least memory
  double largest_batch = 0;                    // if no option fits: largest batch with which one would fit
  int64_t possible = 0;                        // options with rules that fit and known costs of all collectives
  int64_t too_large = 0;                       // possible options that do not fit in memory
  int64_t without_network = 0;                 // options with groups that are not boxes of the cluster
};

/// Number of candidates that the search examines and progress counts. A candidate is a set of rules for all meshes with
/// the same sizes in any order. Rules that the size of one axis excludes do not count. Polls for interrupts.
int64_t count_of_candidates(const StepModel& model, const SuggestionSpace& space);

/// Finds the best options by an exhaustive search, which skips only what cannot be among the best whatever its
/// collectives take. Better means fewer expected seconds; between equals (to 1 in 2^24) fewer by the other measure,
/// overlapped or serial; then less memory, fewer mesh axes, fewer sharded dimensions. Options on different meshes that
/// shard the same sets of logical axes into as many parts are the same to a user: the best one represents them. Calls
/// `progress` with the number of examined candidates. Polls for interrupts. Throws InvalidArgument for more than
/// `kMostCandidates` candidates, Unavailable as step_seconds does.
Suggestions suggest_steps(const StepModel& model, const Cluster& cluster, const SuggestionSpace& space,
                          const Efficiency& efficiency, const std::function<void(int64_t)>& progress = {});
inline constexpr int64_t kMostCandidates = 50'000'000;

}  // namespace artifex_devices::planner
