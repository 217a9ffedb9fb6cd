// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "artifex_devices/reduction/exact_state.h"

namespace artifex_devices {

/// Returns (sum + rest) / divisor, rounded once; nothing where that takes an ExactState. The parts are finite.
std::optional<double> quotient(double sum, double rest, const RoundingFormat& format, int64_t divisor) noexcept;

}  // namespace artifex_devices
