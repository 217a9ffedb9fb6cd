// SPDX-License-Identifier: Apache-2.0
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "artifex_devices/base/throw_error.h"
#include "artifex_planner/training/fit.h"
#include "artifex_planner/training/links.h"
#include "bind_planner.h"
#include "bind_training.h"

namespace artifex_devices::planner::bindings {
namespace {

namespace py = pybind11;

using StepArguments = std::tuple<py::dict, std::shared_ptr<Cluster>, py::dict, double>;

py::tuple fit_of(const std::vector<StepArguments>& measured, const py::dict& efficiency) {
  std::vector<MeasuredStep> steps;
  for (const auto& [shape, cluster, config, seconds] : measured) {
    steps.push_back({shape_from_python(shape), cluster, training_config_from_python(config), seconds});
  }
  const Efficiency start = efficiency_from_python(efficiency);
  const TrainingFit found = run_blocking([&] { return fit_training(steps, start); });
  py::dict factors;
  for (const Factor factor : found.fitted) {
    const SourcedNumber& number = found.efficiency.factors[static_cast<size_t>(factor)];
    factors[py::str(std::string(to_string(factor)))] = py::make_tuple(number.value, number.source);
  }
  return py::make_tuple(factors, found.predicted);
}

double collective_seconds_of(const std::string& op, double bytes, const std::shared_ptr<Cluster>& cluster,
                             int64_t devices, const py::dict& efficiency, bool sharp) {
  const std::optional<Collective> kind = collective_from_name(op);
  if (!kind) throw_error("fit: op is {:?}; expected 'all_gather', 'reduce_scatter' or 'all_reduce'; choose one", op);
  TrainingLinks links(*cluster);
  return links.seconds(*kind, bytes, devices, 1, efficiency_from_python(efficiency), sharp);
}

/// The arguments of Efficiency.
py::dict published_of(const std::shared_ptr<Cluster>& cluster) {
  const Efficiency efficiency = published_efficiency(*cluster);
  py::dict result;
  for (int i = 0; i < kFactorCount; ++i) {
    const SourcedNumber& number = efficiency.factors[static_cast<size_t>(i)];
    result[py::str(std::string(to_string(static_cast<Factor>(i))))] = py::make_tuple(number.value, number.source);
  }
  return result;
}

}  // namespace

void bind_training_fit(py::module_& module) {
  module.def("fit_training", &fit_of, py::arg("steps"), py::arg("efficiency"),
             "(number, source) of each fitted factor by name, and the seconds of each step with them. `steps`: shape, "
             "cluster, configuration and measured seconds of each.");
  module.def("published_efficiency", &published_of, py::arg("cluster"),
             "(number, source) of each factor of a cluster's chip by name, without fits to training runs.");
  module.def("training_collective_seconds", &collective_seconds_of, py::arg("op"), py::arg("bytes"), py::arg("cluster"),
             py::arg("devices"), py::arg("efficiency"), py::arg("sharp") = false,
             "Seconds of a collective over the first devices of a cluster, as plan_training prices it; with `sharp`, "
             "switches between nodes may sum.");
}

}  // namespace artifex_devices::planner::bindings
