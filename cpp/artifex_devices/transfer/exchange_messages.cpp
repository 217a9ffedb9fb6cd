// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/transfer/exchange_messages.h"

#include <utility>
#include <vector>

namespace artifex_devices {
namespace {

using Message = CrossReshard::Message;

constexpr int kMaxInFlight = 32;  // messages in each direction that need no additional memory

/// The messages that a reshard sends, or the messages that it receives, in the same order in all processes.
struct Direction {
  const std::vector<Message>& messages;
  bool is_send;
  int64_t begun = 0;
  int in_flight = 0;
  int64_t packed = 0;  // bytes of packed messages in flight

  const Message* next() const { return begun < static_cast<int64_t>(messages.size()) ? &messages[begun] : nullptr; }
};

/// A message in flight.
struct Started {
  Direction* direction;
  int64_t number;    // in its direction
  BufferRef packed;  // its bytes, where they are not in place
};

class Flow {
 public:
  Flow(const CrossReshard& reshard, Exchange& exchange, int64_t budget)
      : reshard_(reshard), exchange_(exchange), budget_(budget) {}

  void run() {
    Direction receives{reshard_.receives(), false};
    Direction sends{reshard_.sends(), true};
    for (;;) {
      begin(receives);
      begin(sends);
      if (receives.in_flight + sends.in_flight == 0) return;
      for (const int64_t number : exchange_.wait_some()) finish(std::exchange(started_[number], {}));
    }
  }

 private:
  /// Begins at least one message, and further messages as long as they fit into the budget.
  void begin(Direction& direction) {
    for (const Message* message = direction.next(); message != nullptr; message = direction.next()) {
      const int64_t number = direction.begun;
      BufferRef memory = direction.is_send ? reshard_.send_in_place(number) : reshard_.receive_in_place(number);
      BufferRef packed;
      if (!memory.block) {
        if (direction.in_flight > 0 && direction.packed + message->bytes > budget_) return;
        packed = memory = {packing_space(*reshard_.client(), message->bytes).allocate(message->bytes), 0};
        direction.packed += message->bytes;
        if (direction.is_send) reshard_.pack(number, packed.host_data());
      } else if (direction.in_flight >= kMaxInFlight) {
        return;
      }
      if (direction.is_send) {
        exchange_.send(std::move(memory), message->bytes, message->peer);
      } else {
        exchange_.receive(std::move(memory), message->bytes, message->peer);
      }
      started_.push_back({&direction, number, std::move(packed)});
      ++direction.in_flight;
      ++direction.begun;
    }
  }

  void finish(const Started& message) {
    Direction& direction = *message.direction;
    --direction.in_flight;
    if (!message.packed.block) return;
    direction.packed -= direction.messages[message.number].bytes;
    if (!direction.is_send) reshard_.unpack(message.number, message.packed.host_data());
  }

  const CrossReshard& reshard_;
  Exchange& exchange_;
  int64_t budget_;  // of each direction
  std::vector<Started> started_;
};

}  // namespace

MemorySpace& packing_space(const Client& client, int64_t bytes) {
  const Device& device = *client.default_device();
  if (client.copy_engine() != nullptr) return device.space(MemoryKind::kPinnedHost);
  return client.shared_arena(device, bytes);
}

void exchange_messages(const CrossReshard& reshard, Exchange& exchange, int64_t budget) {
  Flow(reshard, exchange, budget / 2).run();
}

}  // namespace artifex_devices
