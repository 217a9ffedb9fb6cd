// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "artifex_devices/partition/shard_domains.h"

namespace artifex_devices {

/// Checks the arguments of a plan from one sharding to another. Throws InvalidArgument for domains of different shapes,
/// an itemsize below 1, and a value whose bytes do not fit 63 bits. Returns false if the shape has a dimension of size
/// 0: there are no elements to move (and the product of the other sizes may overflow).
bool check_reshard(const ShardDomains& source, const ShardDomains& destination, int64_t itemsize,
                   std::string_view operation);

/// Adds `bytes * times` to `total`. Throws InvalidArgument when the total does not fit 63 bits.
void add_bytes(int64_t* total, int64_t bytes, int64_t times, std::string_view operation);

}  // namespace artifex_devices
