// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "artifex_devices/sharding/mesh.h"

namespace artifex_devices {

/// How many characters the text shows: its code points.
int64_t text_width(std::string_view text) noexcept;

/// Lines of at most about `width` characters, cut at blanks; a longer word has a line of its own.
std::vector<std::string> wrapped(std::string_view text, int64_t width);

/// An axis name on one line, without quotes.
std::string axis_label(AxisName name);

/// "CPU": the platform of the devices in capitals, as JAX's pictures have it.
std::string platform_label(const DeviceList& devices);

/// Devices by ascending id, the fullest form that `max_width` characters hold of "CPU 0,1,2,3", "CPU 0-3" and "CPU
/// 0..3"; the last one when none fits. No ids at all is "".
std::string devices_label(std::string_view platform, const std::vector<int64_t>& ids, int64_t max_width);

}  // namespace artifex_devices
