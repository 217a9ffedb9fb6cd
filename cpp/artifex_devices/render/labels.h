// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "artifex_devices/sharding/mesh.h"

namespace artifex_devices {

/// Number of code points of the text.
int64_t text_width(std::string_view text) noexcept;

/// The text in lines of at most `width` characters, split at spaces. A longer word gets its own line.
std::vector<std::string> wrapped(std::string_view text, int64_t width);

/// An axis name on one line, without quotes.
std::string axis_label(AxisName name);

/// The platform of the devices in capitals, "CPU", as in JAX's pictures.
std::string platform_label(const DeviceList& devices);

/// Devices by ascending id: the most detailed of "CPU 0,1,2,3", "CPU 0-3" and "CPU 0..3" that fits in `max_width`
/// characters, or the last one when none fits. Empty when there are no ids.
std::string devices_label(std::string_view platform, const std::vector<int64_t>& ids, int64_t max_width);

}  // namespace artifex_devices
