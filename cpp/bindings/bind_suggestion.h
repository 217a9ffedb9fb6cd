// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

namespace artifex_devices::bindings {

void bind_suggestion(pybind11::module_& module);

}  // namespace artifex_devices::bindings
