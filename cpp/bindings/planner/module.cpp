// SPDX-License-Identifier: Apache-2.0
#include <pybind11/pybind11.h>

#include "bind_planner.h"

PYBIND11_MODULE(_planner, module, pybind11::mod_gil_not_used()) {
  using namespace artifex_devices::planner::bindings;
  module.doc() = "The compiled planner of artifex_devices. Use the names that artifex_devices.planner exports.";
  pybind11::module_::import("artifex_devices._core");  // its classes, and the exceptions of the runtime
  bind_advice(module);
  bind_calibration(module);
  bind_failures(module);
  bind_profile_fit(module);
  bind_reshard(module);
  bind_reshard_picture(module);
  bind_step(module);
  bind_training(module);
}
