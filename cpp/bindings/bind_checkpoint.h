// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

namespace artifex_devices::bindings {

/// Adds the files of checkpoints, for artifex_devices.checkpoint.
void bind_checkpoint(pybind11::module_& module);

}  // namespace artifex_devices::bindings
