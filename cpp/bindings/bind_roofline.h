// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

namespace artifex_devices::bindings {

/// Rooflines: their arithmetic, and the measurement of this machine's.
void bind_roofline(pybind11::module_& module);

}  // namespace artifex_devices::bindings
