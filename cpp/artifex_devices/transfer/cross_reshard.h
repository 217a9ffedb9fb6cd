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

/// A reshard of which this process does its part: copies among its own buffers, and messages to and from others, which
/// somebody else carries. Every process makes the same one from the same plan.
///
/// A message goes from one process to one other. It is the elements of some boxes of the array, each row-major, one
/// after the other, together at most kMessageBytes (a single row of a box that is longer is one message). Sends and
/// receives come in one order that all processes share: by (receiver - sender) modulo the number of processes, then as
/// in the plan. Who keeps the next ones of each list in flight, at least one of each, never waits in a circle.
///
/// Use: begin, then for each send pack (or in_place) and carry, for each receive carry and unpack (or in_place), then
/// finish. Example: (8,) of 4-byte items from P('x') to P() on one device in each of two processes is one message of
/// 16 bytes each way.
class CrossReshard {
 public:
  static constexpr int64_t kMessageBytes = int64_t{8} << 20;

  struct Message {
    int peer = 0;
    int64_t bytes = 0;
  };

  /// Plans; takes no memory. Throws DeletedArray, InvalidArgument as reshard() does.
  CrossReshard(ArrayRef source, ShardingRef sharding, const ReshardOptions& options);

  /// The processes that send or receive anything, ascending; none where nothing goes from process to process.
  const std::vector<int>& processes() const noexcept { return processes_; }
  bool has_messages() const noexcept { return !processes_.empty(); }
  const ReshardPlan& plan() const noexcept { return plan_; }
  /// "device_put of float32(8, 4) from P('x') ... to ...", for messages.
  std::string text() const;
  /// A text that is equal in two processes where they plan the same reshard.
  std::string identity() const;
  const ClientRef& client() const noexcept { return sharding_->devices()->client(); }

  /// Waits for the source (interruptible), takes the memory and begins the copies within the process. Throws as
  /// Storage::allocate, and what went wrong with the source.
  void begin();

  const std::vector<Message>& sends() const noexcept { return sends_; }
  const std::vector<Message>& receives() const noexcept { return receives_; }
  /// Where the message's bytes lie in the source, or go in the result, one after the other; without a block where they
  /// must be packed or unpacked.
  BufferRef send_in_place(int64_t i) const { return in_place(send_parts_[static_cast<size_t>(i)], kFrom); }
  BufferRef receive_in_place(int64_t i) const { return in_place(receive_parts_[static_cast<size_t>(i)], kTo); }
  /// Between the buffers and `packed`, which has the message's bytes.
  void pack(int64_t i, std::byte* packed) const;
  void unpack(int64_t i, const std::byte* packed) const;

  /// The result, once all messages have come; copies within the process may still be under way.
  ArrayRef finish();

 private:
  /// A box, as numbers of the world's buffers.
  struct Part {
    int64_t source;
    int64_t destination;
    IndexDomain box;
    int64_t bytes;
  };
  using Parts = std::vector<Part>;
  enum Side : uint8_t { kFrom, kTo };
  /// The memory of a box on one side.
  struct Place {
    BufferRef memory;
    Dims strides;
    int lane;
  };

  void split();
  ReshardPlan local_plan() const;
  Place place(const Part& part, Side side) const;
  BufferRef in_place(const Parts& parts, Side side) const;

  ArrayRef source_;
  ShardingRef sharding_;
  ReshardOptions options_;
  LayoutRef layout_;
  int64_t itemsize_;
  ShardDomains from_domains_;
  ShardDomains to_domains_;
  WorldPlaces from_;
  WorldPlaces to_;
  ReshardPlan plan_;  // of the world
  std::vector<int> processes_;
  std::vector<Message> sends_;
  std::vector<Message> receives_;
  std::vector<Parts> send_parts_;
  std::vector<Parts> receive_parts_;
  std::vector<BufferRef> held_;  // of the source, by its numbers here
  Moved moved_;
};

}  // namespace artifex_devices
