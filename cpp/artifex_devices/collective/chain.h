// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "artifex_devices/array/host_view.h"
#include "artifex_devices/collective/combine.h"
#include "artifex_devices/collective/shared_lanes.h"

namespace artifex_devices {

/// This process's part of a reduction over neighbours, who stand in a row in the order of the members: the partial
/// result goes from one to the next in pieces, and the finished pieces come back, both at once. Each element is
/// combined in the order of the members, so the bits are those of `all_reduce` over all blocks; 16-bit floats travel
/// as float32 where they are added or multiplied, and are rounded once.
///
/// Each piece is read from memory once and written to the result once, past the cache; what travels stays in it.
class ReductionChain {
 public:
  /// What a process wants of the result, in elements: `out` from `begin` on. Of what those before it want, it has to
  /// hand on all that lies below `handed_on`.
  struct Share {
    int64_t begin = 0;
    int64_t handed_on = 0;
  };

  /// `before` and `after`: the neighbours beside this process in the row, -1 where it is the first or the last one.
  /// `blocks`: of this process's members, in their order; dense, of one shape and the dtype of `out`, which overlaps
  /// none. Who has none wants all of the result. All stay until the end. Throws as all_reduce; InvalidArgument without
  /// a neighbour, or for a share that lies beyond the blocks.
  ReductionChain(SharedLanes& lanes, int64_t before, int64_t after, Reduction reduction, std::vector<HostView> blocks,
                 HostView out, Share share);

  /// Goes on as far as it can, and waits at most so long for what others have to do; whether all is done. Throws
  /// Interrupted, after which the lanes are of no use.
  bool advance(std::chrono::nanoseconds patience);

  /// Pieces that were combined or came back so far.
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
  int64_t end_;      // of what `out` has
  bool is_widened_;  // float32 travels
  int64_t elements_;
  int64_t step_;  // elements of a piece
  int64_t pieces_;
  int64_t coming_back_ = 0;  // finished pieces that the process after this one hands back
  int64_t made_ = 0;
  int64_t returned_ = 0;
  std::vector<std::byte> unsent_;  // of the last process: a finished piece that nobody else wants
};

}  // namespace artifex_devices
