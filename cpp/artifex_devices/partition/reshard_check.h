// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "artifex_devices/partition/shard_domains.h"

namespace artifex_devices {

/// What every plan from one sharding to another asks of them first. Throws InvalidArgument for domains of different
/// shapes, an itemsize below 1, and a value whose bytes do not fit 63 bits. False when there is nothing to move because
/// the shape has a 0 in it (sizes beside a 0 may multiply to anything).
bool check_reshard(const ShardDomains& source, const ShardDomains& destination, int64_t itemsize,
                   std::string_view operation);

/// Adds `bytes` as often as `times` says; throws InvalidArgument where the total does not fit 63 bits.
void add_bytes(int64_t* total, int64_t bytes, int64_t times, std::string_view operation);

}  // namespace artifex_devices
