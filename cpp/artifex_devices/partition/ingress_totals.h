// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "artifex_devices/partition/shard_domains.h"

namespace artifex_devices {

/// Bytes that devices must receive for a value to get another sharding: the totals of ingress_bytes.
struct IngressTotals {
  int64_t bytes = 0;       // received by all devices of the destination
  int64_t most_bytes = 0;  // received by the device that receives most
  int64_t devices = 0;     // number of devices that receive anything

  friend bool operator==(const IngressTotals&, const IngressTotals&) = default;
};

/// The totals of ingress_bytes for these devices, from a loop over the positions of the destination. Throws
/// InvalidArgument when they do not fit 63 bits; `operation` begins the message.
IngressTotals ingress_totals(const ShardDomains& source, const std::vector<int64_t>& source_device_of_position,
                             const ShardDomains& destination,
                             const std::vector<int64_t>& destination_device_of_position, int64_t itemsize,
                             std::string_view operation = "ingress_totals");

/// The same where each position is the same device in the source and in the destination. Intersects the intervals of
/// each dimension for ranges of positions whose devices all receive the same amount. The number of ranges depends on
/// how much the two shardings differ, not on the number of positions. Loops over all positions where that is quicker,
/// and where the sizes of the two meshes' axes have no common refinement (2 * 3 and 3 * 2). Example: a (2^20, 2^20)
/// array on 1024 x 1024 devices, from rows to blocks, is one range: every device holds 1024 of the 2^20 elements that
/// it needs.
IngressTotals ingress_totals(const ShardDomains& source, const ShardDomains& destination, int64_t itemsize,
                             std::string_view operation = "ingress_totals");

}  // namespace artifex_devices
