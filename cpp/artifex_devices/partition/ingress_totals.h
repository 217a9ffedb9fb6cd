// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "artifex_devices/partition/shard_domains.h"

namespace artifex_devices {

/// What must come in where a value gets another sharding: ingress_bytes summed up.
struct IngressTotals {
  int64_t bytes = 0;       // over all devices of the destination
  int64_t most_bytes = 0;  // of one device
  int64_t devices = 0;     // how many lack anything

  friend bool operator==(const IngressTotals&, const IngressTotals&) = default;
};

/// The totals of ingress_bytes with these devices. Looks at each position of the destination. Throws InvalidArgument
/// where they do not fit 63 bits, as an error of `operation`.
IngressTotals ingress_totals(const ShardDomains& source, const std::vector<int64_t>& source_device_of_position,
                             const ShardDomains& destination,
                             const std::vector<int64_t>& destination_device_of_position, int64_t itemsize,
                             std::string_view operation = "ingress_totals");

/// The same where each position of the source is the same device as that position of the destination: from the
/// intersections of intervals a dimension, for whole ranges of positions at a time whose devices all lack equally much.
/// How many those are depends on how differently the two cut, not on how many positions there are. Looks at each where
/// that is quicker, and where the sizes of the two meshes' axes have no common refinement (2 * 3 and 3 * 2).
/// Example: a (2^20, 2^20) array on 1024 x 1024 devices, from rows to blocks, is one range: every device holds 1024 of
/// the 2^20 elements that it needs.
IngressTotals ingress_totals(const ShardDomains& source, const ShardDomains& destination, int64_t itemsize,
                             std::string_view operation = "ingress_totals");

}  // namespace artifex_devices
