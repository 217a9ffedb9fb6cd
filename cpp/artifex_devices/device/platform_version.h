// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace artifex_devices {

/// Version of this library: "0.1.0".
std::string library_version();

/// Versions behind the CPU devices, on one line: "artifex_devices 0.1.0, GCC 12.2.0, hwloc 2.9.0, fmt 9.1.0".
std::string platform_version();

}  // namespace artifex_devices
