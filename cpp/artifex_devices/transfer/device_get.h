// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "artifex_devices/array/array.h"
#include "artifex_devices/array/host_view.h"

namespace artifex_devices {

/// The value as one dense row-major host array, never writable. Waits for the array (interruptible). When one buffer
/// holds it all, that memory is shown without a copy; else it is gathered once into a block of our cache and kept with
/// the array. `owner` keeps the memory alive. Throws DeletedArray.
std::shared_ptr<const HostView> device_get(const ArrayRef& array);

/// Gathers into memory of the caller (any strides, writable, same shape and dtype).
void device_get_into(const ArrayRef& array, const HostView& destination);

}  // namespace artifex_devices
