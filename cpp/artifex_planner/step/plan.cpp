// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/step/plan.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "artifex_devices/base/throw_error.h"

namespace artifex_devices::planner {
namespace {

/// Size of a logical axis; 1 where no tensor has it.
int64_t size_of(const StepModel& model, int axis) {
  for (const StepTensor& tensor : model.tensors) {
    const auto found = std::ranges::find(tensor.axes, axis);
    if (found != tensor.axes.end()) return tensor.shape[found - tensor.axes.begin()];
  }
  return 1;
}

}  // namespace

double largest_step_batch(const StepModel& model, const std::vector<int64_t>& mesh_sizes, const StepRules& rules,
                          const StepMemory& memory, int64_t memory_bytes) {
  const double scale = largest_step_scale(memory, memory_bytes);
  if (std::isinf(scale) || model.batch_axes.empty()) return std::numeric_limits<double>::infinity();
  const int64_t batch = size_of(model, model.batch_axes.front());
  double unit = 1;  // batches are multiples of it
  for (const int axis : model.batch_axes) {
    int64_t parts = 1;
    for (size_t i = 0; i < mesh_sizes.size(); ++i) {
      if ((rules[static_cast<size_t>(axis)] >> i & 1) != 0) parts *= mesh_sizes[i];
    }
    // The axis has `each` positions for every `whole` examples.
    const int64_t size = size_of(model, axis);
    const int64_t whole = batch / std::gcd(batch, size);
    const int64_t each = size / std::gcd(batch, size);
    const double multiple = static_cast<double>(whole) * static_cast<double>(parts / std::gcd(parts, each));
    if (unit * multiple > 0x1p53) return 0;
    unit = static_cast<double>(std::lcm(static_cast<int64_t>(unit), static_cast<int64_t>(multiple)));
  }
  // Rounding of the solution must not cost a batch that just fits.
  return std::max(std::floor(scale * static_cast<double>(batch) / unit * (1 + 1e-12)), 0.0) * unit;
}

PlannedStep plan_step(const StepModel& model, const Cluster& cluster, const ClusterMesh& mesh,
                      const std::vector<std::string>& axis_names, const StepRules& rules,
                      const Efficiency& efficiency) {
  const std::vector<std::string> wrong = step_mismatches(model, mesh.sizes, axis_names, rules);
  if (!wrong.empty()) {
    throw_error(
        "{}: the rules do not fit the model: {}; expected dimensions that divide evenly, and each axis of the mesh in "
        "one dimension of a tensor; change the rules, the mesh or the shapes",
        kPlanStep, fmt::join(wrong, "; "));
  }
  PlannedStep plan;
  plan.work = step_work(model, mesh.sizes, rules);
  std::vector<MeshAxes> used;
  for (const StepCollective& each : plan.work.collectives) {
    if (std::ranges::find(used, each.axes) == used.end()) used.push_back(each.axes);
  }
  plan.hardware = device_rates(cluster, kPlanStep);
  const StepNetwork network = step_network(cluster, mesh.sizes, mesh.devices, used);
  plan.expected = expected_step(plan.work, plan.hardware, network, efficiency);
  plan.bound = step_seconds(plan.work, plan.hardware, network);
  plan.regimes = step_regimes(plan.work, plan.hardware, network, true);
  plan.serial_regimes = step_regimes(plan.work, plan.hardware, network, false);
  for (const StepCollective& each : plan.work.collectives) {
    plan.costs.push_back(step_collective_cost(each, network, efficiency));
  }
  for (const StepProduct& each : plan.work.products) {
    plan.product_seconds.push_back(expected_product_seconds(each, plan.hardware, efficiency));
  }
  plan.largest_batch = largest_step_batch(model, mesh.sizes, rules, plan.work.memory, plan.hardware.memory_bytes);
  return plan;
}

}  // namespace artifex_devices::planner
