// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "artifex_devices/partition/reshard_plan.h"
#include "artifex_devices/sharding/sharding.h"

namespace artifex_devices {

/// The buffers that arrays of one sharding have in all processes. Every process uses the same numbers, in the order of
/// first positions. In a world of one process they equal Sharding::buffers().
struct WorldPlaces {
  BufferPlaces places;                        // for reshard plans
  IdVector<PlaceId, BufferId> local_buffers;  // of this process; none for a buffer of another process

  explicit WorldPlaces(const Sharding& sharding);
};

}  // namespace artifex_devices
