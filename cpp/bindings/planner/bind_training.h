// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

#include "artifex_planner/training/plan.h"

namespace artifex_devices::planner::bindings {

Efficiency efficiency_from_python(const pybind11::dict& from);
/// The fields of TrainingConfig by name. Throws InvalidArgument for an unknown kind.
TrainingConfig training_config_from_python(const pybind11::dict& from);
pybind11::dict training_plan_dict(const TrainingPlan& plan);

}  // namespace artifex_devices::planner::bindings
