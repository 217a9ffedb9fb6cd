// SPDX-License-Identifier: Apache-2.0
#include <pybind11/functional.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "artifex_devices/sharding/mesh.h"
#include "artifex_planner/step/description.h"
#include "artifex_planner/step/result_fields.h"
#include "bind_planner.h"
#include "struct_caster.h"

namespace artifex_devices::planner::bindings {
namespace {

namespace py = pybind11;

py::dict plan_step_for(const StepDescription& description, const std::shared_ptr<Cluster>& cluster, const Mesh& mesh,
                       const std::vector<std::string>& axis_names, const StepRules& rules,
                       const Efficiency& efficiency) {
  const StepModel model = step_model(description);
  const PlannedStep plan = run_blocking([&] {
    const Dims& sizes = mesh.abstract_mesh().axis_sizes();
    ClusterMesh placed{{sizes.begin(), sizes.end()}, {}};
    for (int64_t i = 0; i < mesh.size(); ++i) placed.devices.push_back((*mesh.devices())[Position(i)]->id().number());
    return plan_step(model, *cluster, placed, axis_names, rules, efficiency);
  });
  return to_python(OfStep<PlannedStep>{plan, plan, model});
}

using Meshes = std::vector<std::pair<std::vector<int64_t>, std::vector<int64_t>>>;

SuggestionSpace space_of(Meshes meshes, std::vector<int> sharded_axes, bool overlaps, int top) {
  SuggestionSpace space{{}, std::move(sharded_axes), overlaps, top};
  for (auto& [sizes, devices] : meshes) space.meshes.push_back({std::move(sizes), std::move(devices)});
  return space;
}

py::dict suggest_steps_for(const StepDescription& description, const std::shared_ptr<Cluster>& cluster, Meshes meshes,
                           std::vector<int> sharded_axes, bool overlaps, int top, const Efficiency& efficiency,
                           const py::object& progress) {
  const StepModel model = step_model(description, "suggest");
  const SuggestionSpace space = space_of(std::move(meshes), std::move(sharded_axes), overlaps, top);
  const std::function<void(int64_t)> report = progress_report(progress);
  Suggestions found;
  const ExplainedSuggestions explained = run_blocking([&] {
    found = suggest_steps(model, *cluster, space, efficiency, report);
    return explain_suggestions(model, *cluster, space, found, efficiency);
  });
  return to_python(SuggestedSteps{found, explained, model});
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
  module.def("plan_step", &plan_step_for, py::arg("model"), py::arg("cluster").none(false), py::arg("mesh"),
             py::arg("axis_names"), py::arg("rules"), py::arg("efficiency"),
             R"(Returns a dict of the work, memory and seconds of a step on each device of a mesh.

Args:
    model: Description of the step.
    cluster: Cluster that the devices belong to.
    mesh: Mesh of the cluster's devices.
    axis_names: Names of the mesh axes.
    rules: Mesh axes of each logical axis, one bit for each mesh axis.
    efficiency: Factors of the expected seconds.
)");
  module.def("mesh_shapes", &mesh_shapes, py::arg("devices"), py::arg("most_axes"),
             "Returns every list of 1 to `most_axes` factors, each 2 or more, whose product is `devices`; [1] "
             "for one device.");
  module.def("suggestion_candidates", &candidates_of, py::arg("model"), py::arg("meshes"), py::arg("sharded_axes"),
             "Returns the number that `progress` of suggest_steps counts up to.");
  module.def("suggest_steps", &suggest_steps_for, py::arg("model"), py::arg("cluster").none(false), py::arg("meshes"),
             py::arg("sharded_axes"), py::arg("overlaps"), py::arg("top"), py::arg("efficiency"), py::arg("progress"),
             R"(Searches for the meshes and rules with the shortest step. Returns their plans and reasons in a dict.

`meshes` has the axis sizes of each mesh, and its device ids by position.
)");
}

}  // namespace artifex_devices::planner::bindings
