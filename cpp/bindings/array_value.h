// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

#include "artifex_devices/array/array.h"

namespace artifex_devices::bindings {

/// The value as a read-only ndarray (transfer/device_get.h); waits without the GIL.
pybind11::object value_of(const ArrayRef& array);

}  // namespace artifex_devices::bindings
