// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "artifex_devices/collective/combine.h"

namespace artifex_devices::bindings {

/// "sum", "prod", "max" or "min". Throws InvalidArgument for other names.
Reduction reduction_from_name(const std::string& kind);

}  // namespace artifex_devices::bindings
