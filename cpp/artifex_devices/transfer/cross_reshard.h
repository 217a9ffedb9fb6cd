// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "artifex_devices/array/array.h"
#include "artifex_devices/partition/reshard_plan.h"
#include "artifex_devices/sharding/world_places.h"
#include "artifex_devices/transfer/reshard.h"

namespace artifex_devices {

/// This process's part of a reshard between processes: copies among its own buffers, and messages to and from other
/// processes, which the caller sends and receives. Every process derives it from the same plan.
///
/// A message goes from one process to another. It contains the elements of consecutive boxes of the array, each
/// row-major, at most kMessageBytes in total (a longer single row of a box is one message). Sends and receives come in
/// one order that all processes share: by (receiver - sender) modulo the number of processes, then as in the plan. A
/// process that keeps the next messages of each list in flight, at least one of each, cannot deadlock. Only a message's
/// start in the plan is stored, not its boxes, of which there can be millions.
///
/// Use: begin; for each send pack (or in_place) and send; for each receive receive and unpack (or in_place); finish.
/// Example: (8,) of 4-byte items from P('x') to P() on one device in each of two processes is one message of 16 bytes
/// each way.
class CrossReshard {
 public:
  static constexpr int64_t kMessageBytes = int64_t{8} << 20;

  struct Message {
    ProcessIndex peer = {};
    int64_t bytes = 0;
  };

  /// Plans; takes no memory. Throws DeletedArray, InvalidArgument as reshard() does.
  CrossReshard(ArrayRef source, ShardingRef sharding, const ReshardOptions& options);

  /// The processes that send or receive, ascending; empty without messages.
  const std::vector<ProcessIndex>& processes() const noexcept { return processes_; }
  bool has_messages() const noexcept { return !processes_.empty(); }
  const ReshardPlan& plan() const noexcept { return *plan_; }
  /// "device_put of float32(8, 4) from P('x') ... to ...", for messages.
  std::string text() const;
  /// A text that is equal in two processes where they plan the same reshard.
  std::string identity() const;
  const ClientRef& client() const noexcept { return sharding_->devices()->client(); }

  /// Waits for the source (interruptible), allocates the memory and starts the copies within the process. Throws as
  /// Storage::allocate, and the source's error.
  void begin();

  const std::vector<Message>& sends() const noexcept { return sends_; }
  const std::vector<Message>& receives() const noexcept { return receives_; }
  /// The message's bytes in the source, or their place in the result, if they are contiguous there; else without a
  /// block: they must be packed or unpacked.
  BufferRef send_in_place(int64_t i) const { return in_place(send_boxes_[i], kFrom); }
  BufferRef receive_in_place(int64_t i) const { return in_place(receive_boxes_[i], kTo); }
  /// Between the buffers and `packed`, which has the message's bytes.
  void pack(int64_t i, std::byte* packed) const;
  void unpack(int64_t i, const std::byte* packed) const;

  /// The result, once all messages have arrived; copies within the process may still be running.
  ArrayRef finish();

 private:
  enum Side : uint8_t { kFrom, kTo };
  /// Consecutive boxes of one shape along one dimension, each from the same place of a different source tile; or a
  /// piece of a box that is longer than a message.
  struct BoxSequence {
    TileId tile;  // of the source, that the first box is read from
    int64_t tile_step = 0;
    PlaceId destination;
    int64_t dimension = 0;
    IndexDomain box;    // the first one
    int64_t bytes = 0;  // of one box
    int64_t count = 1;
  };
  /// The memory of the first box on one side.
  struct Place {
    BufferRef memory;
    Dims strides;
    LaneId lane;
  };
  /// The boxes of one message: `count` of those from the sender to the receiver, in the order of the plan, after the
  /// first `skipped` of those into the receiver's buffer `first`.
  struct MessageBoxes {
    ProcessIndex sender = {};
    ProcessIndex receiver = {};
    size_t first = 0;  // in buffers_of_[receiver]
    int64_t skipped = 0;
    int64_t count = 0;
  };
  void find_processes();
  void find_owners();
  void split(ProcessIndex sender, ProcessIndex receiver);
  /// Calls `f(const BoxSequence&, size_t buffer)` for the boxes of a message: `buffer` as in MessageBoxes::first. With
  /// a count of -1, for all boxes from the sender to the receiver.
  template <class F>
  void for_boxes(const MessageBoxes& message, F&& f) const;
  template <class Sink>
  void copy(const MessageBoxes& message, Side side, std::byte* packed, Sink&& sink) const;
  void copy(const MessageBoxes& message, Side side, std::byte* packed) const;
  Place place(const BoxSequence& boxes, Side side) const;
  BufferRef in_place(const MessageBoxes& message, Side side) const;

  ArrayRef source_;
  ShardingRef sharding_;
  ReshardOptions options_;
  LayoutRef layout_;
  int64_t itemsize_;
  ShardDomains from_domains_;
  ShardDomains to_domains_;
  WorldPlaces from_;
  WorldPlaces to_;
  std::shared_ptr<const ReshardPlan> plan_;                  // of the world
  IdVector<ProcessIndex, std::vector<PlaceId>> buffers_of_;  // of the destination
  IdVector<ProcessIndex, CutRange> cuts_of_;                 // of the source
  IdVector<ProcessIndex, bool> holds_its_cuts_;              // whether no other holds a tile in its cuts_of_
  std::vector<ProcessIndex> processes_;
  std::vector<Message> sends_;
  std::vector<Message> receives_;
  std::vector<MessageBoxes> send_boxes_;
  std::vector<MessageBoxes> receive_boxes_;
  BufferRefs held_;                           // of the source
  IdVector<TileId, std::byte*> only_buffer_;  // of the source: the memory of its one buffer, null unless that is here
  PendingStorage moved_;
  int64_t begin_ns_ = 0;  // recorded_begin_ns(Recorded::kTransfers)
};

}  // namespace artifex_devices
