// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

#include <memory>

#include "artifex_devices/array/array.h"

namespace artifex_devices::bindings {

namespace py = pybind11;

/// repr, str, describe and _repr_html_.
void bind_array_looks(py::class_<Array, std::shared_ptr<Array>>& array);

}  // namespace artifex_devices::bindings
