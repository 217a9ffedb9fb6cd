// SPDX-License-Identifier: Apache-2.0
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "artifex_planner/profile/fit.h"
#include "bind_planner.h"
#include "struct_caster.h"

namespace artifex_devices::planner::bindings {
namespace {

namespace py = pybind11;

using SpanArguments = std::tuple<std::string, double, double>;

PerKind<double> kinds_from_python(const std::map<std::string, double>& from) {
  PerKind<double> result{};
  for (const auto& [name, seconds] : from) at(result, kind_named<ProfileKind>("profile: a kind", name)) = seconds;
  return result;
}

py::tuple profile_parts_of(const std::vector<SpanArguments>& spans, int64_t steps) {
  std::vector<ProfileSpan> all;
  all.reserve(spans.size());
  for (const auto& [kind, begin, end] : spans)
    all.push_back({kind_named<ProfileKind>("profile: a kind", kind), begin, end});
  const ProfileParts parts = run_blocking([&] { return profile_parts(all, steps); });
  return py::make_tuple(dict_by_kind<ProfileKind>(parts.busy), dict_by_kind<ProfileKind>(parts.alone), parts.idle,
                        parts.seconds);
}

py::dict profile_fit_of(const TransformerShape& shape, const std::shared_ptr<Cluster>& cluster,
                        const TrainingConfig& config, int64_t stage, const std::map<std::string, double>& busy,
                        const std::map<std::string, double>& alone, double idle, const Efficiency& start,
                        const std::string& source) {
  const ProfileParts parts{kinds_from_python(busy), kinds_from_python(alone), idle, 0};
  const ProfileFit found =
      run_blocking([&] { return fit_profile(shape, *cluster, config, stage, parts, start, source); });
  py::dict overlap;
  for (size_t i = 0; i < found.overlap.size(); ++i) {
    if (found.overlap[i]) overlap[kKindNames<Traffic>[i].data()] = *found.overlap[i];
  }
  py::dict result;
  result["factors"] = factors_dict(found.efficiency, found.fitted);
  result["overlap"] = std::move(overlap);
  result["before"] = dict_by_kind<ProfileKind>(found.before);
  result["after"] = dict_by_kind<ProfileKind>(found.after);
  result["notes"] = found.notes;
  return result;
}

}  // namespace

void bind_profile_fit(py::module_& module) {
  module.def("profile_parts", &profile_parts_of, py::arg("spans"), py::arg("steps"),
             R"(Returns (busy, alone, idle, all) seconds of one profiled step; busy and alone are dicts by kind.

Args:
    spans: (kind, begin, end) of each span, in seconds.
    steps: Number of steps that the spans cover.
)");
  module.def("fit_profile", &profile_fit_of, py::arg("shape"), py::arg("cluster"), py::arg("config"), py::arg("stage"),
             py::arg("busy"), py::arg("alone"), py::arg("idle"), py::arg("efficiency"), py::arg("source"),
             R"(Fits the factors of a chip to the parts of a profiled step.

Returns:
    dict of `factors`, `overlap`, the expected seconds `before` and `after` the fit, and `notes`.
)");
}

}  // namespace artifex_devices::planner::bindings
