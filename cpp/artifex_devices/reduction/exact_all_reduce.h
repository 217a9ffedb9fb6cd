// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "artifex_devices/array/host_view.h"
#include "artifex_devices/reduction/exact_state.h"

namespace artifex_devices {

/// out[i] = (inputs[0][i] + inputs[1][i] + ...) / divisor: the exact quotient, rounded once to `format`. All views are
/// dense float32 or float64, of one shape and dtype; `out` overlaps no input. On several cores where the executor would
/// split a copy of as many bytes; interruptible. Throws InvalidArgument for anything else.
void exact_all_reduce(std::span<const HostView> inputs, const RoundingFormat& format, int64_t divisor,
                      const HostView& out);

}  // namespace artifex_devices
