// SPDX-License-Identifier: Apache-2.0
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "artifex_devices/base/throw_error.h"
#include "artifex_planner/profile/fit.h"
#include "bind_planner.h"
#include "bind_training.h"

namespace artifex_devices::planner::bindings {
namespace {

namespace py = pybind11;

using SpanArguments = std::tuple<std::string, double, double>;

py::dict kinds_dict(const PerKind<double>& values) {
  py::dict result;
  for (size_t i = 0; i < values.size(); ++i) {
    result[py::str(std::string(to_string(static_cast<ProfileKind>(i))))] = values[i];
  }
  return result;
}

ProfileKind kind_from_python(const std::string& name) {
  const std::optional<ProfileKind> kind = profile_kind_from_name(name);
  if (!kind) throw_error("profile: {:?} is not a kind of operation; expected one of profile_parts.h", name);
  return *kind;
}

PerKind<double> kinds_from_python(const std::map<std::string, double>& from) {
  PerKind<double> result{};
  for (const auto& [name, seconds] : from) at(result, kind_from_python(name)) = seconds;
  return result;
}

py::tuple profile_parts_of(const std::vector<SpanArguments>& spans, int64_t steps) {
  std::vector<ProfileSpan> all;
  all.reserve(spans.size());
  for (const auto& [kind, begin, end] : spans) all.push_back({kind_from_python(kind), begin, end});
  const ProfileParts parts = run_blocking([&] { return profile_parts(all, steps); });
  return py::make_tuple(kinds_dict(parts.busy), kinds_dict(parts.alone), parts.idle, parts.seconds);
}

py::dict profile_fit_of(const py::dict& shape, const std::shared_ptr<Cluster>& cluster, const py::dict& config,
                        int64_t stage, const std::map<std::string, double>& busy,
                        const std::map<std::string, double>& alone, double idle, const py::dict& efficiency,
                        const std::string& source) {
  const TransformerShape sizes = shape_from_python(shape);
  const TrainingConfig parsed = training_config_from_python(config);
  const Efficiency start = efficiency_from_python(efficiency);
  const ProfileParts parts{kinds_from_python(busy), kinds_from_python(alone), idle, 0};
  const ProfileFit found =
      run_blocking([&] { return fit_profile(sizes, *cluster, parsed, stage, parts, start, source); });
  py::dict factors;
  for (const Factor factor : found.fitted) {
    const SourcedNumber& number = found.efficiency.factors[static_cast<size_t>(factor)];
    factors[py::str(std::string(to_string(factor)))] = py::make_tuple(number.value, number.source);
  }
  py::dict overlap;
  for (size_t i = 0; i < found.overlap.size(); ++i) {
    if (found.overlap[i]) overlap[py::str(std::string(to_string(static_cast<Traffic>(i))))] = *found.overlap[i];
  }
  py::dict result;
  result["factors"] = std::move(factors);
  result["overlap"] = std::move(overlap);
  result["before"] = kinds_dict(found.before);
  result["after"] = kinds_dict(found.after);
  result["notes"] = found.notes;
  return result;
}

}  // namespace

void bind_profile_fit(py::module_& module) {
  module.def("profile_parts", &profile_parts_of, py::arg("spans"), py::arg("steps"),
             "Seconds of a step by kind: busy and alone, then idle and all. `spans`: kind, begin and end of each.");
  module.def(
      "fit_profile", &profile_fit_of, py::arg("shape"), py::arg("cluster"), py::arg("config"), py::arg("stage"),
      py::arg("busy"), py::arg("alone"), py::arg("idle"), py::arg("efficiency"), py::arg("source"),
      "Factors and overlap that fit the parts of a profiled step, expected seconds before and after, and notes.");
}

}  // namespace artifex_devices::planner::bindings
