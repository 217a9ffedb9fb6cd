// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/topology/hwloc_version.h"

#include <hwloc.h>

namespace artifex_devices {

std::string_view hwloc_version() noexcept { return HWLOC_VERSION; }

}  // namespace artifex_devices
