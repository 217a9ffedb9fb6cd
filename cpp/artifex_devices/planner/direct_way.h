// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "artifex_devices/partition/reshard_plan.h"
#include "artifex_devices/planner/reshard_price.h"

namespace artifex_devices {

/// One end of a reshard and where it lies.
struct PlacedEnd {
  ShardDomains domains;
  std::vector<int64_t> devices;     // id of each position
  std::vector<BufferPlace> places;  // of each buffer
  std::vector<int64_t> buffers;     // number of each position's buffer
};

/// Each position has a buffer of its own, on a cluster: places as the nearest replica is chosen by, first on the same
/// host, then in the same slice. Throws InvalidArgument for ids that are not in the cluster.
PlacedEnd place_on_cluster(const ShardDomains& domains, const std::vector<int64_t>& devices, const Cluster& cluster);

/// About how many direct copies there would be into so many buffers, no fewer than there are; for that, none is made.
double most_copies(const ShardDomains& source, const ShardDomains& destination, int64_t buffers);
inline double most_copies(const PlacedEnd& source, const PlacedEnd& destination) {
  return most_copies(source.domains, destination.domains, static_cast<int64_t>(destination.places.size()));
}

/// Copies from shard to shard, as transfer/ executes them, with what they come to.
struct DirectWay {
  ReshardPlan plan;
  std::vector<int64_t> bytes_in;  // of each destination position: into its buffer from other devices
  int64_t peak_bytes = 0;         // most of any device: its shard before, and the one afterwards unless it is the same
};
/// Positions that share a buffer: what it receives counts for the first. `copies_all`: what is in place already is
/// copied too, as transfers between kinds of memory do.
DirectWay make_direct_way(const PlacedEnd& source, const PlacedEnd& destination, int64_t itemsize,
                          bool copies_all = false);

/// The copies as messages between devices, for price_messages.
std::vector<DeviceMessage> messages_of(const DirectWay& way, const PlacedEnd& source, const PlacedEnd& destination);

}  // namespace artifex_devices
