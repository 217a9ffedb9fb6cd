// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "artifex_devices/array/host_view.h"
#include "artifex_devices/collective/combine.h"
#include "artifex_devices/collective/shared_channels.h"

namespace artifex_devices {

/// This process's part of a reduction over a chain of processes, in the order of the members: the partial result is
/// passed forward in pieces while finished pieces are passed back. Each element is combined in the order of the
/// members, so the bits are equal to the bits of `all_reduce` over all blocks. Sums and products of 16-bit floats are
/// passed as float32 and rounded once.
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

  /// The channels to a neighbour in the chain. The first process has no neighbour before it, the last process none
  /// after it.
  struct Link {
    ChannelReader* from = nullptr;
    ChannelWriter* to = nullptr;
  };

  /// `piece_bytes`: size of a slot of the channels, the same in all processes. `blocks`: of this process's members, in
  /// their order; dense, of one shape and the dtype of `out`, which overlaps none. A process without blocks stores all
  /// of the result. All views and channels stay valid until the end. Throws as all_reduce; InvalidArgument without a
  /// peer, or for a share beyond the blocks.
  ReductionChain(Link before, Link after, int64_t piece_bytes, Reduction reduction, std::vector<HostView> blocks,
                 HostView out, Share share);
  /// A chain of processes of one host. `before` and `after` are peers, -1 for none.
  ReductionChain(SharedChannels& channels, int64_t before, int64_t after, Reduction reduction,
                 std::vector<HostView> blocks, HostView out, Share share);

  /// Continues until it is done or `timeout` expires while it waits for other processes. Returns whether it is done.
  /// Throws Interrupted, after which the channels are unusable.
  bool advance(std::chrono::nanoseconds timeout);

  /// Number of pieces combined or returned so far.
  int64_t progress() const noexcept { return made_ + returned_; }

  /// Number of pieces that are passed forward, and of finished pieces that the next process passes back.
  int64_t pieces() const noexcept { return pieces_; }
  int64_t coming_back() const noexcept { return coming_back_; }
  /// Bytes of a piece on its way forward, and of the finished piece on its way back.
  int64_t bytes_forward(int64_t number) const noexcept { return piece(number).count * carried_bytes_; }
  int64_t bytes_back(int64_t number) const noexcept { return piece(number).count * itemsize(out_.dtype); }

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

  ChannelReader* from_before_;
  ChannelWriter* to_before_;
  ChannelReader* from_after_;
  ChannelWriter* to_after_;
  Reduction reduction_;
  std::vector<HostView> blocks_;
  HostView out_;
  Share share_;
  int64_t end_;            // of the elements of `out`
  bool is_widened_;        // pieces are passed as float32
  int64_t carried_bytes_;  // of an element of a piece that is passed forward
  int64_t elements_;
  int64_t step_;  // elements of a piece
  int64_t pieces_;
  int64_t coming_back_ = 0;  // finished pieces that the next process passes back
  int64_t made_ = 0;
  int64_t returned_ = 0;
  std::vector<std::byte> unsent_;  // of the last process: a finished piece that no other process stores
};

}  // namespace artifex_devices
