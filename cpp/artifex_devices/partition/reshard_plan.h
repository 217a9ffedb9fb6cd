// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "artifex_devices/base/id.h"
#include "artifex_devices/base/index_domain.h"
#include "artifex_devices/partition/shard_domains.h"

namespace artifex_devices {

/// One buffer of a distributed array: which tile it holds, and where. Devices that share an arena can share a buffer.
struct BufferPlace {
  TileId tile;
  DeviceId device = {};   // the first that uses it
  ArenaIndex arena = {};  // the memory that holds it
  ProcessIndex process = {};
  int32_t host = 0;  // machine of the process
};

/// The buffers of one end of a reshard.
using BufferPlaces = IdVector<PlaceId, BufferPlace>;

enum class LinkKind : uint8_t { kSameDevice, kSameArena, kOtherArena, kOtherProcess, kOtherHost };
inline constexpr size_t kLinks = 5;

/// Copy the elements of `box` (in indices of the global array) from one buffer to another.
struct ReshardCopy {
  PlaceId source;       // of the source's places
  PlaceId destination;  // of the destination's places
  IndexDomain box;
  int64_t bytes = 0;
  LinkKind link = LinkKind::kSameDevice;
};

/// Adjacent boxes of equal shape that one destination buffer receives. They follow each other in one dimension. Each is
/// read from a different source tile, at the same offset within the tile.
struct ReshardRun {
  IndexDomain box;        // the first box
  int64_t count = 1;      // number of boxes
  int64_t dimension = 0;  // dimension in which each box begins where the previous one ends
  TileId tile;            // source tile of the first box
  int64_t tile_step = 0;  // difference between the source tiles of successive boxes
  int64_t bytes = 0;      // bytes of one box
};

/// A range of source tiles: in each sharded dimension the parts from `first` to `last`. Empty where `last` < `first`.
struct CutRange {
  Dims first;
  Dims last;
};

/// The copies that turn one sharding into another. Executed by transfer/, estimated by artifex_planner/, printed by
/// explain.
///
/// Stores a few numbers for each buffer. There can be as many copies as pairs of buffers, so copies are computed on
/// demand, from intersections of intervals in each dimension, and never stored. Immutable; thread-safe.
///
/// Each copy reads the nearest replica: on the same device, then in the same arena, process and host, then any other.
/// Equally near replicas of a tile take turns, by the index of the destination among the readers of the tile. The
/// choice depends on nothing else, so all processes choose alike. A device has one arena, an arena one process, a
/// process one host. A destination buffer is reused when a source buffer with the same box is on its device or in its
/// arena. Each destination byte is written at most once. Empty destination buffers are neither reused nor copied to.
/// Example: (8,) of 4-byte items from 2 parts to 4 parts on devices {0, 1} and {0, 1, 2, 3} of one arena is 4 copies of
/// 8 bytes: 0->0, 0->1, 1->2, 1->3.
class ReshardPlan {
 public:
  /// With `copies_all`, buffers that could be reused are copied too: for transfers between kinds of memory, and for
  /// requests of a copy. Throws InvalidArgument for domains of different shapes, places that name no tile, tiles that
  /// are needed and that no source buffer holds, and totals that overflow.
  ReshardPlan(const ShardDomains& source, BufferPlaces source_places, const ShardDomains& destination,
              BufferPlaces destination_places, int64_t itemsize, bool copies_all = false);

  int64_t itemsize() const noexcept { return itemsize_; }
  /// Whether one process holds all buffers of both ends.
  bool is_one_process() const noexcept { return in_one_process_; }
  const ShardDomains& source() const noexcept { return source_; }
  const ShardDomains& destination() const noexcept { return destination_; }
  const BufferPlaces& source_places() const noexcept { return source_places_; }
  const BufferPlaces& destination_places() const noexcept { return destination_places_; }

  /// Destination buffers that are equal to a source buffer: nothing moves. (destination, source) pairs.
  const std::vector<std::pair<PlaceId, PlaceId>>& reused() const noexcept { return reused_; }
  int64_t bytes_reused() const noexcept { return bytes_reused_; }
  /// Number of copies, and the sum of their bytes.
  int64_t copy_count() const noexcept { return copy_count_; }
  int64_t bytes_copied() const noexcept { return bytes_copied_; }
  /// Bytes of copies by LinkKind. Within one arena the cost grows with the buffers, otherwise with the copies.
  std::array<int64_t, kLinks> bytes_by_link() const;
  /// Bytes of copies over `link` and more distant kinds.
  int64_t bytes_over(LinkKind link) const;

  /// Calls `f(const ReshardCopy&)` for each copy: by destination, then by box, row-major.
  template <class F>
  void for_each_copy(F&& f) const {
    for (const PlaceId i : destination_places_.ids()) for_copies_into(i, f);
  }
  /// The same for the copies into one destination buffer.
  template <class F>
  void for_copies_into(PlaceId destination, F&& f) const;

  /// The source buffer that a destination buffer reads a tile from.
  PlaceId source_of(TileId tile, PlaceId destination) const {
    const int64_t first = first_[tile];
    if (first_[tile + 1] - first == 1) return order_[first];
    return nearest(tile, destination);
  }
  LinkKind link(PlaceId source, PlaceId destination) const noexcept;
  /// The smallest range that contains all source tiles of a process.
  CutRange cuts_of_process(ProcessIndex process) const;

 private:
  friend class ReshardRuns;
  bool is_copied_to(PlaceId destination) const noexcept { return is_copied_[destination]; }
  void sort_sources();
  void plan_destinations(bool copies_all);
  void check_sources(PlaceId destination) const;
  PlaceId nearest(TileId tile, PlaceId destination) const;
  int64_t reader_index(TileId tile, PlaceId destination) const;

  ShardDomains source_;
  ShardDomains destination_;
  BufferPlaces source_places_;
  BufferPlaces destination_places_;
  int64_t itemsize_;
  Dims tile_strides_;                // from a source tile to the next one in each sharded dimension
  std::vector<PlaceId> order_;       // source buffers by tile, and within a tile by host, process, arena and device
  IdVector<TileId, int64_t> first_;  // index in order_ of the first buffer of each tile
  IdVector<PlaceId, int64_t> earlier_with_tile_;  // by destination: earlier destinations with the same tile
  IdVector<PlaceId, bool> is_copied_;
  std::vector<std::pair<PlaceId, PlaceId>> reused_;
  int64_t bytes_reused_ = 0;
  int64_t copy_count_ = 0;
  int64_t bytes_copied_ = 0;
  bool in_one_arena_ = true;
  bool in_one_process_ = true;
};

/// Iterates over the runs into one destination buffer, in the order of their boxes: at most three for each row of
/// source tiles. Example: for (ReshardRuns runs(plan, PlaceId(0)); runs.next();) use(runs.run());
class ReshardRuns {
 public:
  /// With `within`, only runs from source tiles in that range.
  ReshardRuns(const ReshardPlan& plan, PlaceId destination, const CutRange* within = nullptr);
  bool next();
  const ReshardRun& run() const noexcept { return run_; }

 private:
  const ReshardPlan& plan_;
  IndexDomain box_;  // of the destination
  Dims first_;       // parts of the source that overlap it
  Dims last_;
  Dims part_;  // where the next run begins
  bool has_next_ = true;
  ReshardRun run_;
};

template <class F>
void ReshardPlan::for_copies_into(PlaceId destination, F&& f) const {
  ReshardCopy copy;
  copy.destination = destination;
  for (ReshardRuns runs(*this, destination); runs.next();) {
    const ReshardRun& run = runs.run();
    copy.box = run.box;
    copy.bytes = run.bytes;
    for (int64_t i = 0; i < run.count; ++i) {
      copy.source = source_of(run.tile + i * run.tile_step, destination);
      copy.link = link(copy.source, destination);
      f(std::as_const(copy));
      copy.box.origin[run.dimension] += run.box.shape[run.dimension];
    }
  }
}

/// For each position of the destination, the bytes of its shard that its device does not hold in the source: a lower
/// bound on what the device receives. Each position has the id of its device. Devices that the source lacks hold
/// nothing.
/// Example: (8,) of 4-byte items from 2 parts on devices {0, 1} to 4 parts on {0, 1, 2, 3} is {0, 8, 8, 8}.
std::vector<int64_t> ingress_bytes(const ShardDomains& source, const std::vector<int64_t>& source_device_of_position,
                                   const ShardDomains& destination,
                                   const std::vector<int64_t>& destination_device_of_position, int64_t itemsize);

}  // namespace artifex_devices
