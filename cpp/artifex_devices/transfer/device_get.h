// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "artifex_devices/array/array.h"
#include "artifex_devices/array/host_view.h"

namespace artifex_devices {

/// The value as one dense host array, never writable: row-major, or in the order of the array's layout where one buffer
/// holds it all. Waits for the array (interruptible). When one buffer
/// holds it all, that memory is shown without a copy; else it is gathered once into a block of our cache and kept with
/// the array. `owner` keeps the memory alive. Throws DeletedArray, NotAddressable.
std::shared_ptr<const HostView> device_get(const ArrayRef& array);

/// device_get where the array and what was begun to be gathered of it are ready; null where it would have to wait.
std::shared_ptr<const HostView> device_get_if_ready(const ArrayRef& array);

/// Begins to gather and returns at once; memory is taken in the call. The value's `ready` says when it is written, or
/// what went wrong in the transfer that makes the array. It is kept with the array as device_get keeps it, and a
/// device_get meanwhile waits for it. Deleting the array does not disturb it. Below config().async_copy_bytes it is
/// written already.
std::shared_ptr<const HostView> device_get_async(const ArrayRef& array);

/// Gathers into memory of the caller (any strides, writable, same shape and dtype).
void device_get_into(const ArrayRef& array, const HostView& destination);

}  // namespace artifex_devices
