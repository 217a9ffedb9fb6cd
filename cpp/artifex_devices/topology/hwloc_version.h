// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace artifex_devices {

/// Returns the version of hwloc that the library was built with: "2.9.0".
std::string_view hwloc_version() noexcept;

}  // namespace artifex_devices
