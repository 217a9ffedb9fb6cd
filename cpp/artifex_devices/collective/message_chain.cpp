// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/collective/message_chain.h"

#include <algorithm>
#include <utility>

namespace artifex_devices {

MessageChannel::MessageChannel(std::byte* memory, int64_t slots, int64_t slot_bytes) noexcept
    : slots_(static_cast<uint64_t>(slots)) {
  reader.slots_ = writer.slots_ = memory;
  reader.slot_count_ = writer.slot_count_ = slots_;
  reader.slot_bytes_ = writer.slot_bytes_ = slot_bytes;
  reader.written_ = writer.written_ = &written_;
  reader.read_ = &read_;
  writer.read_ = &read_;
}

std::optional<int64_t> MessageChannel::begin_receive(int64_t pieces) noexcept {
  return begin(std::min(read_ + slots_, static_cast<uint64_t>(pieces)));
}

std::optional<int64_t> MessageChannel::begin(uint64_t limit) noexcept {
  if (begun_ >= limit) return std::nullopt;
  return static_cast<int64_t>(begun_++);
}

void MessageChannel::ended(int64_t number, uint64_t& counter) {
  early_.insert(static_cast<uint64_t>(number));
  while (early_.erase(counter) > 0) ++counter;
}

MessageChain::MessageChain(const std::array<std::byte*, 4>& memory, int64_t slots, int64_t piece_bytes,
                           Reduction reduction, std::vector<HostView> blocks, HostView out, ReductionChain::Share share)
    : chain_([&] {
        for (size_t i = 0; i < memory.size(); ++i) {
          if (memory[i] != nullptr) channels_[i].emplace(memory[i], slots, piece_bytes);
        }
        return ReductionChain(link(kFromBefore, kToBefore), link(kFromAfter, kToAfter), piece_bytes, reduction,
                              std::move(blocks), std::move(out), share);
      }()) {}

ReductionChain::Link MessageChain::link(Channel from, Channel to) {
  auto& reading = channels_[from];
  auto& writing = channels_[to];
  if (!reading || !writing) return {};
  return {&reading->reader, &writing->writer};
}

std::vector<MessageChain::Message> MessageChain::begin_messages() {
  std::vector<Message> begun;
  for (const Channel channel : {kFromBefore, kToAfter, kFromAfter, kToBefore}) {
    auto& each = channels_[channel];
    if (!each) continue;
    const bool is_forward = channel == kFromBefore || channel == kToAfter;
    const bool is_sent = channel == kToAfter || channel == kToBefore;
    const int64_t pieces = is_forward ? chain_.pieces() : chain_.coming_back();
    while (const std::optional<int64_t> number = is_sent ? each->begin_send() : each->begin_receive(pieces)) {
      begun.push_back({channel, *number, is_forward ? chain_.bytes_forward(*number) : chain_.bytes_back(*number)});
    }
  }
  return begun;
}

void MessageChain::ended(Channel channel, int64_t number) {
  MessageChannel& each = channels_.at(static_cast<size_t>(channel)).value();
  if (channel == kToAfter || channel == kToBefore) {
    each.sent(number);
  } else {
    each.received(number);
  }
}

}  // namespace artifex_devices
