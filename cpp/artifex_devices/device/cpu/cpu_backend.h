// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "artifex_devices/device/backend.h"

namespace artifex_devices {

/// Creates the backend of CPU devices, which share the memory of their NUMA nodes.
BackendRef make_cpu_backend();

}  // namespace artifex_devices
