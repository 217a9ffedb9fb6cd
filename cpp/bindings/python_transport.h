// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "artifex_devices/transfer/transport.h"

namespace artifex_devices::bindings {

/// The transport of every client, by `artifex_devices.distributed`. Its functions take the GIL.
Transport& python_transport();

}  // namespace artifex_devices::bindings
