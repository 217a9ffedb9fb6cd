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

/// Text about the parts of the best option: "12 ms on each device, and 1 ms of 5 ms of collectives that nothing hides".
std::string why_first(const PlannedStep& plan, bool overlaps);

/// Text about the difference between an option and the next better option: "3 ms more: 2.9 ms more that nothing hides
/// (4 ms more in all-gathers of weights over data)".
std::string why_worse(const ExplainedStep& option, const ExplainedStep& before, bool overlaps);

/// Text about the gain of an option that does not fit in memory over the best option that fits: "2 ms less than 1"; ""
/// for nothing.
std::string gain_over(const PlannedStep& option, const PlannedStep& best, bool overlaps);

/// Names for the axes of a mesh: "data" if the axis shards the batch, "spare" if it shards nothing, else "model";
/// several of a kind are numbered.
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
  std::optional<ExplainedSuggestion> smallest;   // where nothing fits, unless it is `too_large`
};

/// Plans the options that a search found, and explains their order.
ExplainedSuggestions explain_suggestions(const StepModel& model, const Cluster& cluster, const SuggestionSpace& space,
                                         const Suggestions& found, const Efficiency& efficiency);

}  // namespace artifex_devices::planner
