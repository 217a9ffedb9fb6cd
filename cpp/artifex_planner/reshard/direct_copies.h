// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "artifex_devices/partition/reshard_plan.h"
#include "artifex_planner/cost/messages.h"

namespace artifex_devices::planner {

/// One end of a reshard and its placement.
struct PlacedEnd {
  ShardDomains domains;
  std::vector<int64_t> devices;  // id of each position
  BufferPlaces places;           // of each buffer
  std::vector<PlaceId> buffers;  // of each position
};

/// The buffers of an array on a cluster, one for each position, with the places by which a copy chooses its source: a
/// replica on the same host, else one in the same slice. Throws InvalidArgument for ids that are not in the cluster.
PlacedEnd place_on_cluster(const ShardDomains& domains, const std::vector<int64_t>& devices, const Cluster& cluster);

/// Upper bound of the number of direct copies into so many buffers, computed without planning them.
double most_copies(const ShardDomains& source, const ShardDomains& destination, int64_t buffers);
inline double most_copies(const PlacedEnd& source, const PlacedEnd& destination) {
  return most_copies(source.domains, destination.domains, destination.places.size());
}

/// Copies from shard to shard, as transfer/ executes them, with their totals.
struct DirectCopies {
  ReshardPlan plan;
  std::vector<int64_t> bytes_in;  // into the buffer of each destination position from other devices
  int64_t peak_bytes = 0;         // maximum of a device: its shard before, and the one after unless it is the same
};
/// The bytes of a buffer that several positions share count for the first. `copies_all`: also copies what is in place
/// already, as transfers between kinds of memory do.
DirectCopies make_direct_copies(const PlacedEnd& source, const PlacedEnd& destination, int64_t itemsize,
                                bool copies_all = false);

/// The copies as messages between devices, for price_messages.
std::vector<DeviceMessage> messages_of(const DirectCopies& direct, const PlacedEnd& source,
                                       const PlacedEnd& destination);

}  // namespace artifex_devices::planner
