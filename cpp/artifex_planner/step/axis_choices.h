// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "artifex_planner/step/model.h"

namespace artifex_devices::planner {

/// Logical axes of a model as bits.
using AxisSet = uint64_t;

/// Sets of logical axes that one mesh axis may shard: no two axes of a set are dimensions of one tensor.
class AxisChoices {
 public:
  /// `shardable`: logical axes that may be in a set. Throws InvalidArgument for models with more than 64 logical axes,
  /// and where there are more than 2^20 sets.
  AxisChoices(const StepModel& model, const std::vector<int>& shardable);

  /// Sets that a mesh axis of this size may shard, the empty one first: it divides all their dimensions. An axis of one
  /// device shards nothing.
  std::vector<AxisSet> for_size(int64_t size) const;
  /// Number of those sets, without a copy. Both functions poll for interrupts.
  int64_t count_for_size(int64_t size) const;
  /// Whether sets for axes of these sizes are compatible: the product of all axes of one dimension divides it.
  bool fit_together(const std::vector<int64_t>& sizes, const std::vector<AxisSet>& sets) const;

 private:
  template <class Visit>
  void each_for_size(int64_t size, Visit visit) const;
  bool divides(AxisSet set, int64_t parts) const;

  std::vector<int64_t> divisors_;  // of all dimensions of each logical axis
  std::vector<AxisSet> sets_;
};

}  // namespace artifex_devices::planner
