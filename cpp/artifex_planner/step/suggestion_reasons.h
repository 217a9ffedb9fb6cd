// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "artifex_planner/step/plan.h"
#include "artifex_planner/step/suggestion.h"

namespace artifex_devices::planner {

// Why one option of a search is placed where it is, in words with numbers. Seconds that differ by less than the search
// distinguishes count as equal.

/// A plan with the model and the names of the mesh axes that texts mention.
struct ExplainedStep {
  const StepModel& model;
  const std::vector<std::string>& axis_names;
  const PlannedStep& plan;
};

/// What limits the best option: "bound by compute: 12 ms of FLOPs".
std::string why_first(const PlannedStep& plan, bool overlaps);

/// What an option loses by to the one before it: "3 ms more: 2.9 ms more in all-gathers of weights over data".
std::string why_worse(const ExplainedStep& option, const ExplainedStep& before, bool overlaps);

/// What an option that does not fit in memory would gain over the best one that does: "2 ms less than 1"; "" for
/// nothing.
std::string gain_over(const PlannedStep& option, const PlannedStep& best, bool overlaps);

/// Names for the axes of a mesh: "data" for one that shards the batch, "model" for another, "spare" for one that shards
/// nothing; several of a kind are numbered.
std::vector<std::string> suggested_names(const StepModel& model, size_t axes, const StepRules& rules);

/// An option of a search with its plan.
struct ExplainedSuggestion {
  size_t mesh = 0;  // number in the space
  StepRules rules;
  std::vector<std::string> axis_names;
  PlannedStep plan;
  std::string reason;
};

struct ExplainedSuggestions {
  std::vector<ExplainedSuggestion> options;      // best first; each reason compares with the one before
  std::optional<ExplainedSuggestion> too_large;  // only where it is faster than the best that fits, or none fits
  std::optional<ExplainedSuggestion> smallest;   // where nothing fits, if it is another one than `too_large`
};

/// Plans what a search found, and explains the order.
ExplainedSuggestions explain_suggestions(const StepModel& model, const Cluster& cluster, const SuggestionSpace& space,
                                         const Suggestions& found);

}  // namespace artifex_devices::planner
