// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "artifex_devices/base/index_domain.h"
#include "artifex_devices/partition/shard_domains.h"

namespace artifex_devices {

/// One buffer of a distributed array: which tile it holds and where. Several devices that share an arena may use one.
struct BufferPlace {
  int64_t tile = 0;
  int64_t device = 0;  // id of the first device that uses it
  int32_t arena = 0;   // memory that it lies in
  int32_t process = 0;
  int32_t host = 0;  // the machine of the process
};

enum class Link : uint8_t { kSameDevice, kSameArena, kOtherArena, kOtherProcess, kOtherHost };

/// Copy the elements of `box` (in indices of the whole array) from one buffer to another.
struct ReshardCopy {
  int64_t source = 0;       // index into the source's buffers
  int64_t destination = 0;  // index into the destination's buffers
  IndexDomain box;
  int64_t bytes = 0;
  Link link = Link::kSameDevice;
};

/// What it takes to get from one sharding to another. Executed by transfer/, priced by planner/, printed by explain.
/// Destination buffers of no bytes stand in neither list.
struct ReshardPlan {
  /// Destination buffers that are a source buffer as it stands: nothing moves. (destination, source) pairs.
  std::vector<std::pair<int64_t, int64_t>> reused;
  std::vector<ReshardCopy> copies;  // by destination, then by box, row-major
  int64_t bytes_reused = 0;
  int64_t bytes_copied = 0;           // sum over copies
  int64_t bytes_between_devices = 0;  // of copies whose link is not kSameDevice
  int64_t bytes_between_arenas = 0;
  int64_t bytes_between_processes = 0;
  int64_t bytes_between_hosts = 0;
};

/// Plans with interval intersections a dimension, so that the cost grows with the copies that come out. Of several
/// replicas the nearest is read: same device, then same arena, process and host, then the others, equals in turn by
/// destination number, so that every process that makes the same plan makes the same choices. A device is on one arena,
/// an arena of one process, a process on one host.
/// A destination buffer is reused when a source buffer of the same box lies on its device or in its arena. Each
/// destination byte is written at most once. Throws InvalidArgument for domains of different shapes, places that name
/// no tile, tiles that no source buffer holds, and totals that overflow.
/// Example: (8,) of 4-byte items from 2 parts to 4 parts on devices {0, 1} and {0, 1, 2, 3} of one arena is 4 copies of
/// 8 bytes: 0->0, 0->1, 1->2, 1->3.
ReshardPlan make_reshard_plan(const ShardDomains& source, const std::vector<BufferPlace>& source_places,
                              const ShardDomains& destination, const std::vector<BufferPlace>& destination_places,
                              int64_t itemsize);

/// Makes copies of what the plan reuses, last of all: for transfers between kinds of memory, and where a copy is asked
/// for. The arguments are those that the plan was made with.
void copy_reused(ReshardPlan* plan, const ShardDomains& destination, const std::vector<BufferPlace>& source_places,
                 const std::vector<BufferPlace>& destination_places, int64_t itemsize);

/// For each position of the destination: the bytes of its shard that its device does not hold in the source, the least
/// that must come in. Devices are given by id, one a position; a device that the source lacks holds nothing.
/// Example: (8,) of 4-byte items from 2 parts on devices {0, 1} to 4 parts on {0, 1, 2, 3} is {0, 8, 8, 8}.
std::vector<int64_t> ingress_bytes(const ShardDomains& source, const std::vector<int64_t>& source_device_of_position,
                                   const ShardDomains& destination,
                                   const std::vector<int64_t>& destination_device_of_position, int64_t itemsize);

}  // namespace artifex_devices
