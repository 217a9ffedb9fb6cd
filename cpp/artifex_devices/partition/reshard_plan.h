// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
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
  int32_t arena = 0;   // memory that it is placed in
  int32_t process = 0;
  int32_t host = 0;  // the machine of the process
};

enum class LinkKind : uint8_t { kSameDevice, kSameArena, kOtherArena, kOtherProcess, kOtherHost };
inline constexpr size_t kLinks = 5;

/// Copy the elements of `box` (in indices of the global array) from one buffer to another.
struct ReshardCopy {
  int64_t source = 0;       // index into the source's buffers
  int64_t destination = 0;  // index into the destination's buffers
  IndexDomain box;
  int64_t bytes = 0;
  LinkKind link = LinkKind::kSameDevice;
};

/// Boxes of equal shape that one destination buffer receives. They follow each other along one dimension, and each is
/// read from a source tile of its own, at the same place within that tile.
struct ReshardRun {
  IndexDomain box;        // the first box
  int64_t count = 1;      // number of boxes
  int64_t dimension = 0;  // each box begins in this dimension where the one before it ends
  int64_t tile = 0;       // source tile of the first box
  int64_t tile_step = 0;  // from the source tile of one box to that of the next
  int64_t bytes = 0;      // of one box
};

/// A range of source tiles: in each sharded dimension the cuts from `first` to `last`. Empty where `last` < `first`.
struct CutRange {
  Dims first;
  Dims last;
};

/// What it takes to get from one sharding to another. Executed by transfer/, priced by planner/, printed by explain.
///
/// Holds a few numbers for each buffer. There can be as many copies as pairs of buffers, so copies are computed when
/// they are asked for, by the intersections of intervals in each dimension, and never stored. Immutable; thread-safe.
///
/// Of several replicas the nearest is read: same device, then same arena, process and host, then the others. Equally
/// near replicas of a tile take turns, by the number of the destination among those that read the tile; the choice
/// depends on nothing else, so that every process that makes the same plan makes the same choices. A device is on one
/// arena, an arena of one process, a process on one host.
/// A destination buffer is reused when a source buffer of the same box is placed on its device or in its arena. Each
/// destination byte is written at most once. Destination buffers of no bytes are neither reused nor copied to.
/// Example: (8,) of 4-byte items from 2 parts to 4 parts on devices {0, 1} and {0, 1, 2, 3} of one arena is 4 copies of
/// 8 bytes: 0->0, 0->1, 1->2, 1->3.
class ReshardPlan {
 public:
  /// With `copies_all`, buffers that could be reused are copied too: for transfers between kinds of memory, and where a
  /// copy is asked for. The grids of both domains must outlive the plan. Throws InvalidArgument for domains of
  /// different shapes, places that name no tile, tiles that are needed and that no source buffer holds, and totals that
  /// overflow.
  ReshardPlan(const ShardDomains& source, std::vector<BufferPlace> source_places, const ShardDomains& destination,
              std::vector<BufferPlace> destination_places, int64_t itemsize, bool copies_all = false);

  int64_t itemsize() const noexcept { return itemsize_; }
  /// Whether the buffers of both ends are all in one process.
  bool is_one_process() const noexcept { return in_one_process_; }
  const ShardDomains& source() const noexcept { return source_; }
  const ShardDomains& destination() const noexcept { return destination_; }
  const std::vector<BufferPlace>& source_places() const noexcept { return source_places_; }
  const std::vector<BufferPlace>& destination_places() const noexcept { return destination_places_; }

  /// Destination buffers that are a source buffer as it stands: nothing moves. (destination, source) pairs.
  const std::vector<std::pair<int64_t, int64_t>>& reused() const noexcept { return reused_; }
  int64_t bytes_reused() const noexcept { return bytes_reused_; }
  /// Number of copies, and the sum of their bytes.
  int64_t copy_count() const noexcept { return copy_count_; }
  int64_t bytes_copied() const noexcept { return bytes_copied_; }
  /// The bytes of copies by LinkKind. In one arena this costs the buffers, else the copies.
  std::array<int64_t, kLinks> bytes_by_link() const;
  /// The bytes of copies over `link` and longer ones.
  int64_t bytes_over(LinkKind link) const;

  /// Calls `f(const ReshardCopy&)` for each copy: by destination, then by box, row-major.
  template <class F>
  void for_each_copy(F&& f) const {
    for (int64_t i = 0; i < static_cast<int64_t>(destination_places_.size()); ++i) for_copies_into(i, f);
  }
  /// The same for the copies into one destination buffer.
  template <class F>
  void for_copies_into(int64_t destination, F&& f) const;
  /// All copies in that order: as much memory as there are copies.
  std::vector<ReshardCopy> list_copies() const;

  /// The source buffer that a destination buffer reads a tile from.
  int64_t source_of(int64_t tile, int64_t destination) const {
    const auto first = first_[static_cast<size_t>(tile)];
    if (first_[static_cast<size_t>(tile) + 1] - first == 1) return order_[static_cast<size_t>(first)];
    return nearest(tile, destination);
  }
  LinkKind link(int64_t source, int64_t destination) const noexcept;
  /// The smallest range that has all source tiles that a process holds.
  CutRange cuts_of_process(int process) const;

 private:
  friend class ReshardRuns;
  bool is_copied_to(int64_t destination) const noexcept { return is_copied_[static_cast<size_t>(destination)]; }
  void sort_sources();
  void plan_destinations(bool copies_all);
  void check_sources(int64_t destination) const;
  int64_t nearest(int64_t tile, int64_t destination) const;
  int64_t turn(int64_t tile, int64_t destination) const;

  ShardDomains source_;
  ShardDomains destination_;
  std::vector<BufferPlace> source_places_;
  std::vector<BufferPlace> destination_places_;
  int64_t itemsize_;
  Dims tile_strides_;           // from a source tile to the next one in each sharded dimension
  std::vector<int64_t> order_;  // source buffers by tile, and within a tile by host, process, arena and device
  std::vector<int64_t> first_;  // of each tile in order_
  std::vector<int64_t> turns_;  // by destination: how many earlier ones hold the same tile
  std::vector<bool> is_copied_;
  std::vector<std::pair<int64_t, int64_t>> reused_;
  int64_t bytes_reused_ = 0;
  int64_t copy_count_ = 0;
  int64_t bytes_copied_ = 0;
  bool in_one_arena_ = true;
  bool in_one_process_ = true;
};

/// Goes through the runs into one destination buffer, in the order of their boxes: at most three for each row of source
/// tiles. Example: for (ReshardRuns runs(plan, 0); runs.next();) use(runs.run());
class ReshardRuns {
 public:
  /// With `within`: of source tiles in that range only.
  ReshardRuns(const ReshardPlan& plan, int64_t destination, const CutRange* within = nullptr);
  bool next();
  const ReshardRun& run() const noexcept { return run_; }

 private:
  const ReshardPlan& plan_;
  IndexDomain box_;  // of the destination
  Dims first_;       // cuts of the source that overlap it
  Dims last_;
  Dims cut_;  // where the next run begins
  bool any_ = true;
  ReshardRun run_;
};

template <class F>
void ReshardPlan::for_copies_into(int64_t destination, F&& f) const {
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

/// For each position of the destination: the bytes of its shard that its device does not hold in the source, the least
/// that must come in. Devices are given by id, one a position; a device that the source lacks holds nothing.
/// Example: (8,) of 4-byte items from 2 parts on devices {0, 1} to 4 parts on {0, 1, 2, 3} is {0, 8, 8, 8}.
std::vector<int64_t> ingress_bytes(const ShardDomains& source, const std::vector<int64_t>& source_device_of_position,
                                   const ShardDomains& destination,
                                   const std::vector<int64_t>& destination_device_of_position, int64_t itemsize);

}  // namespace artifex_devices
