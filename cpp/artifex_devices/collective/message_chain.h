// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "artifex_devices/array/host_view.h"
#include "artifex_devices/collective/chain.h"
#include "artifex_devices/collective/combine.h"
#include "artifex_devices/collective/shared_channels.h"

namespace artifex_devices {

/// A channel to or from a process that shares no memory with this process. The caller sends written pieces as messages,
/// or receives the pieces to read. A message uses the slot `number % slots` of `memory`.
class MessageChannel {
 public:
  MessageChannel(std::byte* memory, int64_t slots, int64_t slot_bytes) noexcept;
  MessageChannel(const MessageChannel&) = delete;
  MessageChannel& operator=(const MessageChannel&) = delete;

  ChannelReader reader;
  ChannelWriter writer;

  /// Number of the next message that the caller must start to send now; nothing if no piece is written.
  std::optional<int64_t> begin_send() noexcept { return begin(written_); }
  /// Number of the next of `pieces` messages to receive, which must begin now; nothing where no slot is free.
  std::optional<int64_t> begin_receive(int64_t pieces) noexcept;
  /// Records that a message has been sent or received. They may end in any order.
  void sent(int64_t number) { ended(number, read_); }
  void received(int64_t number) { ended(number, written_); }

 private:
  std::optional<int64_t> begin(uint64_t limit) noexcept;
  void ended(int64_t number, uint64_t& counter);

  uint64_t slots_;
  uint64_t written_ = 0;
  uint64_t read_ = 0;
  uint64_t begun_ = 0;        // messages
  std::set<uint64_t> early_;  // messages that ended before an earlier one
};

/// A ReductionChain of processes that share no memory.
///
///     do {
///       is_done = chain.advance();
///       // Begin chain.begin_messages(), wait for some messages, and call chain.ended(channel, number) for each of
///       them.
///     } while (!is_done || messages are in flight);
class MessageChain {
 public:
  enum Channel : int64_t { kFromBefore, kToAfter, kFromAfter, kToBefore };

  struct Message {
    Channel channel;
    int64_t number;  // in its channel
    int64_t bytes;
  };

  /// `memory`: of each channel, `slots` slots of `piece_bytes`; null for both channels of a process that does not
  /// exist. The other arguments are the arguments of ReductionChain.
  MessageChain(const std::array<std::byte*, 4>& memory, int64_t slots, int64_t piece_bytes, Reduction reduction,
               std::vector<HostView> blocks, HostView out, ReductionChain::Share share);

  /// Does what the messages so far permit. Returns whether the share of this process is complete and all pieces for
  /// other processes are written. The last messages may still have to be sent.
  bool advance() { return chain_.advance(std::chrono::nanoseconds(0)); }
  /// The messages that the caller must begin now, in the order of their numbers in each channel.
  std::vector<Message> begin_messages();
  void ended(Channel channel, int64_t number);

 private:
  ReductionChain::Link link(Channel from, Channel to);

  std::array<std::optional<MessageChannel>, 4> channels_;
  ReductionChain chain_;
};

}  // namespace artifex_devices
