// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace artifex_devices::planner {

/// A count as a number of formulas.
constexpr double to_real(int64_t count) noexcept { return static_cast<double>(count); }

}  // namespace artifex_devices::planner
