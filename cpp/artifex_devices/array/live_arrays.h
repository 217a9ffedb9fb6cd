// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "artifex_devices/array/array.h"
#include "artifex_devices/base/error.h"

namespace artifex_devices {

/// Every Array that was not deleted, oldest first; shards of arrays are not counted. Exact at the time of the call. A
/// null client means all clients.
std::vector<ArrayRef> live_arrays(const Client* client);

/// The `count` largest arrays of a client for messages: "float32(8192, 8192) over 8 devices, 256.0 MiB".
std::string biggest_live_arrays(const Client& client, int count);

/// Advice on freeing memory, for the end of messages.
inline constexpr std::string_view kFreeMemory =
    "delete arrays that are no longer needed, raise the limit, or shard over more devices";

/// Throws OutOfMemory for `bytes` that an arena could not allocate for `reason`: "RESOURCE_EXHAUSTED: operation: no
/// memory for 12 bytes (12 bytes) on cpu:0: ...; biggest live arrays: ...; repair".
[[noreturn]] void fail_out_of_memory(std::string_view operation, std::string_view where, int64_t bytes,
                                     const OutOfMemory& reason, const Client& client, std::string_view repair);

}  // namespace artifex_devices
