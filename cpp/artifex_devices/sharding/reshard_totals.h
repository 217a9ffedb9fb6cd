// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "artifex_devices/partition/ingress_totals.h"
#include "artifex_devices/sharding/sharding.h"

namespace artifex_devices {

/// Bytes that devices must receive at least where an array of `shape` goes from one sharding to another; needs neither
/// the array nor memory of devices. Throws InvalidArgument for shardings without devices or of different worlds, and as
/// Sharding::domains.
IngressTotals reshard_totals(const Sharding& source, const Sharding& destination, const Dims& shape, int64_t itemsize,
                             std::string_view operation);

}  // namespace artifex_devices
