// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "artifex_devices/array/array.h"
#include "artifex_devices/array/host_view.h"
#include "artifex_devices/transfer/transfer_guard.h"

namespace artifex_devices {

/// The value as one dense host array, never writable: row-major, or in the order of the array's layout where one buffer
/// holds it all. Waits for the array (interruptible). If one buffer holds all of it, shares that memory without a copy;
/// else gathers it once into a block that is cached with the array. `owner` keeps the memory alive. Throws
/// DeletedArray, NotAddressable.
std::shared_ptr<const HostView> device_get(const ArrayRef& array);

/// device_get if the array and its gathered value are ready; null if it would wait.
std::shared_ptr<const HostView> device_get_if_ready(const ArrayRef& array);

/// Allocates memory, starts to gather and returns at once. The value's `ready` is set when it is written, or has the
/// error of the transfer into the array. The value is cached with the array, and a device_get meanwhile waits for it.
/// Deleting the array does not affect it. Below config().async_copy_bytes it is written before the call returns.
std::shared_ptr<const HostView> device_get_async(const ArrayRef& array);

/// The guard of reads by the host, device-to-host: throws TransferGuardError or logs. Reading memory that the host can
/// read, or a value that was read before, is not a transfer. `operation` names what the user called.
void check_host_read(const Array& array, const TransferGuards& guards, bool is_explicit, std::string_view operation,
                     std::string_view repair = {});

}  // namespace artifex_devices
