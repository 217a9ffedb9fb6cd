// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/planner/step_planner.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "artifex_devices/base/throw_error.h"

namespace artifex_devices {
namespace {

/// The largest batch that fits in memory and that its mesh axes divide.
double largest_batch(const StepModel& model, const ClusterMesh& mesh, const StepRules& rules, const PlannedStep& plan) {
  const double scale = largest_step_scale(plan.work.memory, plan.hardware.memory_bytes);
  if (std::isinf(scale) || model.batch_axes.empty()) return std::numeric_limits<double>::infinity();
  const int axis = model.batch_axes.front();
  double batch = 1;
  for (const StepTensor& tensor : model.tensors) {
    const auto found = std::ranges::find(tensor.axes, axis);
    if (found != tensor.axes.end()) batch = static_cast<double>(tensor.shape[found - tensor.axes.begin()]);
  }
  double parts = 1;
  for (size_t i = 0; i < mesh.sizes.size(); ++i) {
    if ((rules[static_cast<size_t>(axis)] >> i & 1) != 0) parts *= static_cast<double>(mesh.sizes[i]);
  }
  // Rounding of the solution must not cost a batch that just fits.
  return std::max(std::floor(scale * batch / parts * (1 + 1e-12)), 0.0) * parts;
}

}  // namespace

PlannedStep plan_step(const StepModel& model, const Cluster& cluster, const ClusterMesh& mesh,
                      const std::vector<std::string>& axis_names, const StepRules& rules) {
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
  plan.hardware = step_hardware(cluster);
  const StepNetwork network = step_network(cluster, mesh.sizes, mesh.devices, used);
  plan.seconds = step_seconds(plan.work, plan.hardware, network);
  plan.regimes = step_regimes(plan.work, plan.hardware, network, true);
  plan.serial_regimes = step_regimes(plan.work, plan.hardware, network, false);
  for (const StepCollective& each : plan.work.collectives) plan.costs.push_back(step_collective_cost(each, network));
  plan.largest_batch = largest_batch(model, mesh, rules, plan);
  return plan;
}

}  // namespace artifex_devices
