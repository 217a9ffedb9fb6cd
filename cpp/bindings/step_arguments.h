// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

#include <string_view>

#include "artifex_devices/planner/step_model.h"

namespace artifex_devices::bindings {

/// A StepModel from the dict that artifex_devices.planner.step_model makes of one. `operation` is the one that errors
/// name.
StepModel step_model_from_python(const pybind11::dict& model, std::string_view operation);

}  // namespace artifex_devices::bindings
