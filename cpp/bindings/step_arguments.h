// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

#include "artifex_devices/planner/step_model.h"

namespace artifex_devices::bindings {

/// A StepModel from the dict that artifex_devices.step_model makes of one.
StepModel step_model_from_python(const pybind11::dict& model);

}  // namespace artifex_devices::bindings
