// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

namespace artifex_devices::bindings {

/// What find_accelerators and CUDADetector ask of the core.
void bind_accelerators(pybind11::module_& module);

}  // namespace artifex_devices::bindings
