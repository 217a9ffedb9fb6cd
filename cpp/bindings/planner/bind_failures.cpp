// SPDX-License-Identifier: Apache-2.0
#include <pybind11/pybind11.h>

#include "artifex_planner/failures/drill.h"
#include "bind_planner.h"
#include "struct_caster.h"

namespace artifex_devices::planner::bindings {

namespace py = pybind11;

void bind_failures(py::module_& module) {
  module.def(
      "drill_failures", [](const FailureModel& model) { return run_blocking([&] { return drill_failures(model); }); },
      py::arg("model"),
      "Simulates failures of a training run. Takes a dict of times in seconds and counts, and returns a dict of "
      "intervals between checkpoints and of the outcomes of each policy.");
}

}  // namespace artifex_devices::planner::bindings
