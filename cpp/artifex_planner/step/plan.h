// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "artifex_planner/step/cost.h"
#include "artifex_planner/step/expected.h"

namespace artifex_devices::planner {

/// A mesh on a cluster.
struct ClusterMesh {
  std::vector<int64_t> sizes;    // of its axes
  std::vector<int64_t> devices;  // ids of its positions, row-major
};

/// Work, seconds and bounds of one step on a mesh.
struct PlannedStep {
  StepWork work;
  DeviceRates hardware;
  ExpectedStep expected;
  StepSeconds bound;                // at published rates
  std::vector<StepRegime> regimes;  // of the bound, whose seconds are piecewise linear in the batch
  std::vector<StepRegime> serial_regimes;
  std::vector<TransferCost> costs;      // expected, of one repetition of each collective of `work`
  std::vector<double> product_seconds;  // expected, of each product of `work`
  double largest_batch = 0;             // that fits in memory and divides; infinity where nothing grows with the batch

  double collective_seconds(size_t number) const noexcept {
    return costs[number].seconds() * static_cast<double>(work.collectives[number].count);
  }
};

/// Largest batch with which a step fits in memory and its mesh axes divide every axis that grows with the batch; 0
/// where none does, infinity where nothing grows with the batch.
double largest_step_batch(const StepModel& model, const std::vector<int64_t>& mesh_sizes, const StepRules& rules,
                          const StepMemory& memory, int64_t memory_bytes);

/// Plans a step; `axis_names` are the names of the mesh axes, for errors. Throws InvalidArgument where the rules do not
/// fit the model (all mismatches in one text) and where groups of the mesh are not boxes of the cluster; Unavailable
/// for rates that are needed and not known.
PlannedStep plan_step(const StepModel& model, const Cluster& cluster, const ClusterMesh& mesh,
                      const std::vector<std::string>& axis_names, const StepRules& rules, const Efficiency& efficiency);

}  // namespace artifex_devices::planner
