// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "artifex_devices/array/host_view.h"

namespace artifex_devices {

/// 128 bits that are equal for equal shape, dtype and bits, and most likely differ otherwise: to find out whether
/// processes have the same value without sending it. Not secure against deliberate collisions. The same
/// on every machine of one byte order; strides do not count.
std::array<uint64_t, 2> digest_of_value(const HostView& value);

}  // namespace artifex_devices
