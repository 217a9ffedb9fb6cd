// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/collective/message_chain.h"

#include <algorithm>
#include <utility>

namespace artifex_devices {

MessageLane::MessageLane(std::byte* memory, int64_t slots, int64_t slot_bytes) noexcept
    : slots_(static_cast<uint64_t>(slots)) {
  reader.slots_ = writer.slots_ = memory;
  reader.slot_count_ = writer.slot_count_ = slots_;
  reader.slot_bytes_ = writer.slot_bytes_ = slot_bytes;
  reader.written_ = writer.written_ = &written_;
  reader.read_ = &read_;
  writer.read_ = &read_;
}

std::optional<int64_t> MessageLane::begin_receive(int64_t pieces) noexcept {
  return begin(std::min(read_ + slots_, static_cast<uint64_t>(pieces)));
}

std::optional<int64_t> MessageLane::begin(uint64_t limit) noexcept {
  if (begun_ >= limit) return std::nullopt;
  return static_cast<int64_t>(begun_++);
}

void MessageLane::ended(int64_t number, uint64_t& counter) {
  early_.insert(static_cast<uint64_t>(number));
  while (early_.erase(counter) > 0) ++counter;
}

MessageChain::MessageChain(const std::array<std::byte*, 4>& memory, int64_t slots, int64_t piece_bytes,
                           Reduction reduction, std::vector<HostView> blocks, HostView out, ReductionChain::Share share)
    : chain_([&] {
        for (size_t i = 0; i < memory.size(); ++i) {
          if (memory[i] != nullptr) lanes_[i].emplace(memory[i], slots, piece_bytes);
        }
        return ReductionChain(link(kFromBefore, kToBefore), link(kFromAfter, kToAfter), piece_bytes, reduction,
                              std::move(blocks), std::move(out), share);
      }()) {}

ReductionChain::Link MessageChain::link(Lane from, Lane to) {
  auto& reading = lanes_[from];
  auto& writing = lanes_[to];
  if (!reading || !writing) return {};
  return {&reading->reader, &writing->writer};
}

std::vector<MessageChain::Message> MessageChain::begin_messages() {
  std::vector<Message> begun;
  for (const Lane lane : {kFromBefore, kToAfter, kFromAfter, kToBefore}) {
    auto& each = lanes_[lane];
    if (!each) continue;
    const bool is_forward = lane == kFromBefore || lane == kToAfter;
    const bool is_sent = lane == kToAfter || lane == kToBefore;
    const int64_t pieces = is_forward ? chain_.pieces() : chain_.coming_back();
    while (const std::optional<int64_t> number = is_sent ? each->begin_send() : each->begin_receive(pieces)) {
      begun.push_back({lane, *number, is_forward ? chain_.bytes_forward(*number) : chain_.bytes_back(*number)});
    }
  }
  return begun;
}

void MessageChain::ended(Lane lane, int64_t number) {
  MessageLane& each = lanes_.at(static_cast<size_t>(lane)).value();
  if (lane == kToAfter || lane == kToBefore) {
    each.sent(number);
  } else {
    each.received(number);
  }
}

}  // namespace artifex_devices
