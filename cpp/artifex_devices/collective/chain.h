// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "artifex_devices/array/host_view.h"
#include "artifex_devices/collective/combine.h"
#include "artifex_devices/collective/shared_lanes.h"

namespace artifex_devices {

/// This process's part of a reduction over a chain of processes of one host, in the order of the members: the partial
/// result is passed forward in pieces while finished pieces are passed back. Each element is combined in the order of
/// the members, so the bits are those of `all_reduce` over all blocks; 16-bit floats are passed as float32 where they
/// are added or multiplied, and are rounded once.
///
/// Each piece is read from memory once and written to the result once, bypassing the cache; messages stay in the cache.
class ReductionChain {
 public:
  /// The part of the result that a process stores, in elements: `out` from `begin` on. It also passes back the elements
  /// below `handed_on`, which the processes before it store.
  struct Share {
    int64_t begin = 0;
    int64_t handed_on = 0;
  };

  /// `before` and `after`: the peers next to this process in the chain, -1 for the first or last process. `blocks`: of
  /// this process's members, in their order; dense, of one shape and the dtype of `out`, which overlaps none. A process
  /// without blocks stores all of the result. All views stay valid until the end. Throws as all_reduce; InvalidArgument
  /// without a peer, or for a share beyond the blocks.
  ReductionChain(SharedLanes& lanes, int64_t before, int64_t after, Reduction reduction, std::vector<HostView> blocks,
                 HostView out, Share share);

  /// Continues until it is done or `timeout` expires while it waits for other processes. Returns whether it is done.
  /// Throws Interrupted, after which the lanes are unusable.
  bool advance(std::chrono::nanoseconds timeout);

  /// Number of pieces combined or returned so far.
  int64_t progress() const noexcept { return made_ + returned_; }

 private:
  struct Piece {
    int64_t begin = 0;  // elements
    int64_t count = 0;
  };

  Piece piece(int64_t number) const noexcept;
  int64_t pieces_below(int64_t element) const noexcept { return (element + step_ - 1) / step_; }
  bool is_done() const noexcept { return made_ == pieces_ && returned_ == coming_back_; }
  bool step();
  bool make();
  bool take_back();
  void combine_piece(const Piece& at, const std::byte* carried, std::byte* target);
  void combine_part(const Piece& at, const std::byte* carried, std::byte* target) const;
  void keep(const Piece& at, const std::byte* finished) const;
  template <class Body>
  void in_parts(const Piece& at, const Body& body) const;

  LaneReader* from_before_ = nullptr;
  LaneWriter* to_before_ = nullptr;
  LaneReader* from_after_ = nullptr;
  LaneWriter* to_after_ = nullptr;
  Reduction reduction_;
  std::vector<HostView> blocks_;
  HostView out_;
  Share share_;
  int64_t end_;      // of the elements of `out`
  bool is_widened_;  // pieces are passed as float32
  int64_t elements_;
  int64_t step_;  // elements of a piece
  int64_t pieces_;
  int64_t coming_back_ = 0;  // finished pieces that the process after this one passes back
  int64_t made_ = 0;
  int64_t returned_ = 0;
  std::vector<std::byte> unsent_;  // of the last process: a finished piece that no other process stores
};

}  // namespace artifex_devices
