// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "artifex_planner/failures/drill.h"

namespace artifex_devices::planner {

/// Simulates one run of `model.horizon` seconds. Returns the parts of its time; `low` and `high` are 0.
/// `model.interval` is above 0.
PolicyOutcome simulate_run(const FailureModel& model, FailurePolicy policy, uint64_t seed);

}  // namespace artifex_devices::planner
