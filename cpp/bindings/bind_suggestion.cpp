// SPDX-License-Identifier: Apache-2.0
#include <pybind11/functional.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "artifex_devices/planner/suggestion.h"
#include "bindings.h"
#include "gil.h"
#include "step_arguments.h"

namespace artifex_devices::bindings {
namespace {

namespace py = pybind11;

using Meshes = std::vector<std::pair<std::vector<int64_t>, std::vector<int64_t>>>;

SuggestionSpace space_of(Meshes meshes, std::vector<int> may_cut, bool overlaps, int top) {
  SuggestionSpace space{{}, std::move(may_cut), overlaps, top};
  for (auto& [sizes, devices] : meshes) space.meshes.push_back({std::move(sizes), std::move(devices)});
  return space;
}

py::object option_of(const std::optional<Suggested>& option) {
  if (!option) return py::none();
  return py::make_tuple(option->mesh, option->rules, option->memory_bytes);
}

py::dict suggest_steps_for(const py::dict& described, const std::shared_ptr<Cluster>& cluster, Meshes meshes,
                           std::vector<int> may_cut, bool overlaps, int top, const py::object& progress) {
  const StepModel model = step_model_from_python(described, "suggest");
  const SuggestionSpace space = space_of(std::move(meshes), std::move(may_cut), overlaps, top);
  std::function<void(int64_t)> report;
  if (!progress.is_none()) {
    report = [&](int64_t done) {
      const AcquireGil gil;
      if (gil.acquired()) progress(done);
    };
  }
  const Suggestions found = [&] {
    const ReleaseGil release;
    return suggest_steps(model, *cluster, space, report);
  }();
  py::list best;
  for (const Suggested& each : found.best) best.append(option_of(each));
  py::dict result;
  result["best"] = std::move(best);
  result["fastest_too_large"] = option_of(found.fastest_too_large);
  result["smallest"] = option_of(found.smallest);
  result["possible"] = found.possible;
  result["too_large"] = found.too_large;
  result["without_network"] = found.without_network;
  return result;
}

int64_t candidates_of(const py::dict& described, Meshes meshes, std::vector<int> may_cut) {
  const StepModel model = step_model_from_python(described, "suggest");
  const SuggestionSpace space = space_of(std::move(meshes), std::move(may_cut), true, 1);
  const ReleaseGil release;
  return count_of_candidates(model, space);
}

}  // namespace

void bind_suggestion(py::module_& module) {
  module.def("_mesh_shapes", &mesh_shapes, py::arg("devices"), py::arg("most_axes"),
             "Every ordered product of 1 to `most_axes` factors of 2 or more.");
  module.def("_suggestion_candidates", &candidates_of, py::arg("model"), py::arg("meshes"), py::arg("may_cut"),
             "What `progress` of _suggest_steps counts up to.");
  module.def("_suggest_steps", &suggest_steps_for, py::arg("model"), py::arg("cluster"), py::arg("meshes"),
             py::arg("may_cut"), py::arg("overlaps"), py::arg("top"), py::arg("progress"),
             "The best meshes and rules for a step, as (mesh, rules, bytes). `meshes`: sizes, and ids by position.");
}

}  // namespace artifex_devices::bindings
