// SPDX-License-Identifier: Apache-2.0
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
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

ProfileParts profile_parts_of(const std::vector<SpanArguments>& spans, int64_t steps) {
  std::vector<ProfileSpan> all;
  all.reserve(spans.size());
  for (const auto& [kind, begin, end] : spans)
    all.push_back({kind_named<ProfileKind>("profile: a kind", kind), begin, end});
  return run_blocking([&] { return profile_parts(all, steps); });
}

}  // namespace

void bind_profile_fit(py::module_& module) {
  module.def("profile_parts", &profile_parts_of, py::arg("spans"), py::arg("steps"),
             R"(Returns the seconds of one profiled step by kind, as a dict.

Args:
    spans: (kind, begin, end) of each span, in seconds.
    steps: Number of steps that the spans cover.
)");
  module.def(
      "fit_profile",
      [](const TransformerShape& shape, const std::shared_ptr<Cluster>& cluster, const TrainingConfig& config,
         int64_t stage, const ProfileParts& parts, const Efficiency& start, const std::string& source) {
        return run_blocking([&] { return fit_profile(shape, *cluster, config, stage, parts, start, source); });
      },
      py::arg("shape"), py::arg("cluster").none(false), py::arg("config"), py::arg("stage"), py::arg("parts"),
      py::arg("efficiency"), py::arg("source"),
      R"(Fits the factors of a chip to the parts of a profiled step.

Returns:
    dict of the factors (`efficiency`), the names of the `fitted` ones, `overlap`, the expected seconds `before` and
    `after` the fit, and `notes`.
)");
}

}  // namespace artifex_devices::planner::bindings
