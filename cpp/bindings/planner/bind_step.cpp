// SPDX-License-Identifier: Apache-2.0
#include <pybind11/functional.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cmath>

#include "artifex_devices/sharding/mesh.h"
#include "artifex_planner/step/description.h"
#include "artifex_planner/step/suggestion_reasons.h"
#include "bind_planner.h"
#include "struct_caster.h"

namespace artifex_devices::planner::bindings {
namespace {

namespace py = pybind11;

/// An int where the value is one.
py::object number(double value) {
  if (!std::isfinite(value) || std::floor(value) != value) return py::float_(value);
  return py::reinterpret_steal<py::object>(PyLong_FromDouble(value));
}

/// The arguments of StepMemory, without the memory of a device.
py::dict memory_dict(const StepMemory& memory) {
  const auto bytes = [](double value) { return number(std::nearbyint(value)); };
  py::dict result;
  result["parameters"] = bytes(memory.parameters.at(1));
  result["gradients"] = bytes(memory.gradients.at(1));
  result["optimizer"] = bytes(memory.optimizer.at(1));
  result["activations"] = bytes(memory.activations.at(1));
  result["given"] = bytes(memory.given.at(1));
  result["working"] = bytes(memory.working_at(1));
  return result;
}

py::list regimes_list(const std::vector<StepRegime>& regimes, int64_t tokens) {
  py::list result;
  for (const StepRegime& each : regimes) {
    result.append(py::make_tuple(std::string(to_string(each.bound)), each.begin * static_cast<double>(tokens),
                                 each.end * static_cast<double>(tokens)));
  }
  return result;
}

/// The arguments of StepCollective; axes of the mesh as bits.
py::tuple collective_arguments(const StepCollective& each, const TransferCost& cost, const StepModel& model) {
  const StepTensor& tensor = model.tensors[static_cast<size_t>(each.tensor)];
  return py::make_tuple(std::string(to_string(each.kind)), tensor.name, each.is_gradient,
                        tensor.role == StepRole::kParameter, each.pass == StepPass::kForward ? "forward" : "backward",
                        model.ops[static_cast<size_t>(each.op)].name, each.axes, each.group, each.count,
                        number(each.bytes.at(1)), number(received_bytes(each.kind, each.bytes.at(1), each.group)),
                        estimate_arguments(cost));
}

/// The arguments of StepProduct.
py::tuple product_arguments(const StepProduct& each, const DeviceRates& hardware, const StepModel& model) {
  return py::make_tuple(model.ops[static_cast<size_t>(each.op)].name, std::string(to_string(each.kind)),
                        std::string(to_string(each.format)), number(each.flops.at(1)), number(each.bytes.at(1)),
                        each.flops.at(1) / hardware.peak(each.format));
}

py::dict step_dict(const PlannedStep& plan, const StepModel& model) {
  const StepSeconds& seconds = plan.seconds;
  py::dict result;
  result["memory"] = memory_dict(plan.work.memory);
  result["memory"]["available"] = plan.hardware.memory_bytes;
  result["largest_batch"] = number(plan.largest_batch);
  result["update_bytes"] = number(plan.work.update_bytes.at(1));
  result["seconds"] =
      py::make_tuple(seconds.compute, seconds.memory, seconds.network, seconds.overlapped(), seconds.serial());
  result["bound"] = std::string(to_string(seconds.overlapped_bound()));
  result["serial_bound"] = std::string(to_string(seconds.serial_bound()));
  result["regimes"] = regimes_list(plan.regimes, model.tokens);
  result["serial_regimes"] = regimes_list(plan.serial_regimes, model.tokens);
  py::list products;
  for (const StepProduct& each : plan.work.products) products.append(product_arguments(each, plan.hardware, model));
  result["products"] = std::move(products);
  py::list collectives;
  for (size_t i = 0; i < plan.costs.size(); ++i) {
    collectives.append(collective_arguments(plan.work.collectives[i], plan.costs[i], model));
  }
  result["collectives"] = std::move(collectives);
  return result;
}

py::dict plan_step_for(const StepDescription& description, const std::shared_ptr<Cluster>& cluster, const Mesh& mesh,
                       const std::vector<std::string>& axis_names, const StepRules& rules) {
  const StepModel model = step_model(description);
  const PlannedStep plan = run_blocking([&] {
    const Dims& sizes = mesh.abstract_mesh().axis_sizes();
    ClusterMesh placed{{sizes.begin(), sizes.end()}, {}};
    for (int64_t i = 0; i < mesh.size(); ++i) placed.devices.push_back((*mesh.devices())[i]->id());
    return plan_step(model, *cluster, placed, axis_names, rules);
  });
  return step_dict(plan, model);
}

using Meshes = std::vector<std::pair<std::vector<int64_t>, std::vector<int64_t>>>;

SuggestionSpace space_of(Meshes meshes, std::vector<int> sharded_axes, bool overlaps, int top) {
  SuggestionSpace space{{}, std::move(sharded_axes), overlaps, top};
  for (auto& [sizes, devices] : meshes) space.meshes.push_back({std::move(sizes), std::move(devices)});
  return space;
}

py::object option_dict(const std::optional<ExplainedSuggestion>& option, const StepModel& model) {
  if (!option) return py::none();
  py::dict result;
  result["mesh"] = option->mesh;
  result["rules"] = option->rules;
  result["axis_names"] = option->axis_names;
  result["why"] = option->reason;
  result["plan"] = step_dict(option->plan, model);
  return result;
}

py::dict suggest_steps_for(const StepDescription& description, const std::shared_ptr<Cluster>& cluster, Meshes meshes,
                           std::vector<int> sharded_axes, bool overlaps, int top, const py::object& progress) {
  const StepModel model = step_model(description, "suggest");
  const SuggestionSpace space = space_of(std::move(meshes), std::move(sharded_axes), overlaps, top);
  const std::function<void(int64_t)> report = progress_report(progress);
  Suggestions found;
  const ExplainedSuggestions explained = run_blocking([&] {
    found = suggest_steps(model, *cluster, space, report);
    return explain_suggestions(model, *cluster, space, found);
  });
  py::list options;
  for (const ExplainedSuggestion& each : explained.options) options.append(option_dict(each, model));
  py::dict result;
  result["options"] = std::move(options);
  result["fastest_too_large"] = option_dict(explained.too_large, model);
  result["smallest"] = option_dict(explained.smallest, model);
  result["largest_batch"] = found.largest_batch;
  result["possible"] = found.possible;
  result["too_large"] = found.too_large;
  result["without_network"] = found.without_network;
  return result;
}

int64_t candidates_of(const StepDescription& description, Meshes meshes, std::vector<int> sharded_axes) {
  const StepModel model = step_model(description, "suggest");
  const SuggestionSpace space = space_of(std::move(meshes), std::move(sharded_axes), true, 1);
  return run_blocking([&] { return count_of_candidates(model, space); });
}

}  // namespace

void bind_step(py::module_& module) {
  module.def("step_mistakes", &step_mistakes, py::arg("model"),
             "Returns every inconsistency in a described step, as one text each.");
  module.def("plan_step", &plan_step_for, py::arg("model"), py::arg("cluster"), py::arg("mesh"), py::arg("axis_names"),
             py::arg("rules"),
             R"(Returns a dict of the work, memory and seconds of a step on each device of a mesh.

Args:
    model: Description of the step.
    cluster: Cluster that the devices belong to.
    mesh: Mesh of the cluster's devices.
    axis_names: Names of the mesh axes.
    rules: Mesh axes of each logical axis, one bit for each mesh axis.
)");
  module.def("mesh_shapes", &mesh_shapes, py::arg("devices"), py::arg("most_axes"),
             "Returns every list of 1 to `most_axes` factors, each 2 or more, whose product is `devices`; [1] "
             "for one device.");
  module.def("suggestion_candidates", &candidates_of, py::arg("model"), py::arg("meshes"), py::arg("sharded_axes"),
             "Returns the number that `progress` of suggest_steps counts up to.");
  module.def("suggest_steps", &suggest_steps_for, py::arg("model"), py::arg("cluster"), py::arg("meshes"),
             py::arg("sharded_axes"), py::arg("overlaps"), py::arg("top"), py::arg("progress"),
             R"(Searches for the meshes and rules with the shortest step. Returns their plans and reasons in a dict.

`meshes` has the axis sizes of each mesh, and its device ids by position.
)");
}

}  // namespace artifex_devices::planner::bindings
