// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "artifex_devices/array/array.h"

namespace artifex_devices {

/// Every Array that has memory of its own and was not deleted (shards taken out of one do not count), oldest first.
/// Exact at the time of the call. A null client means all clients.
std::vector<ArrayRef> live_arrays(const Client* client);

/// For messages: the `count` biggest on a client, "float32(8192, 8192) over 8 devices, 256.0 MiB".
std::string biggest_live_arrays(const Client& client, int count);

}  // namespace artifex_devices
