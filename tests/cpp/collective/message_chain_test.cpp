// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/collective/message_chain.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#include "artifex_devices/collective/reduce.h"

namespace artifex_devices {
namespace {

constexpr int64_t kSlots = 4;
constexpr int64_t kPieceBytes = 64;

using Message = MessageChain::Message;

HostView view(std::vector<float>& data) {
  return {data.data(), DType::kFloat32, Dims{static_cast<int64_t>(data.size())}, Dims{4}, true, nullptr, nullptr};
}

/// One process of a chain: its part, and the messages that it has begun.
struct Process {
  Process(bool has_before, bool has_after, std::vector<float>& block, int64_t begin, int64_t count, int64_t handed_on)
      : memory(4 * kSlots * kPieceBytes), result(static_cast<size_t>(count)) {
    const auto channel = [&](MessageChain::Channel which, bool exists) {
      return exists ? memory.data() + which * kSlots * kPieceBytes : nullptr;
    };
    chain = std::make_unique<MessageChain>(
        std::array{channel(MessageChain::kFromBefore, has_before), channel(MessageChain::kToAfter, has_after),
                   channel(MessageChain::kFromAfter, has_after), channel(MessageChain::kToBefore, has_before)},
        kSlots, kPieceBytes, Reduction::kSum, std::vector{view(block)}, view(result),
        ReductionChain::Share{begin, handed_on});
  }

  std::byte* slot(const Message& message) {
    return memory.data() + (message.channel * kSlots + message.number % kSlots) * kPieceBytes;
  }

  std::vector<std::byte> memory;
  std::vector<float> result;
  std::unique_ptr<MessageChain> chain;
  std::array<std::deque<Message>, 4> begun;
};

/// Carries all messages of a channel that both ends have begun; their ends are reported last one first.
bool carry(Process& sender, MessageChain::Channel out, Process& receiver, MessageChain::Channel in) {
  std::vector<Message> carried;
  while (!sender.begun.at(out).empty() && !receiver.begun.at(in).empty()) {
    const Message sent = sender.begun.at(out).front();
    const Message received = receiver.begun.at(in).front();
    EXPECT_EQ(sent.number, received.number);
    EXPECT_EQ(sent.bytes, received.bytes);
    std::memcpy(receiver.slot(received), sender.slot(sent), static_cast<size_t>(sent.bytes));
    sender.begun.at(out).pop_front();
    receiver.begun.at(in).pop_front();
    carried.insert(carried.begin(), sent);
  }
  for (const Message& each : carried) {
    sender.chain->ended(out, each.number);
    receiver.chain->ended(in, each.number);
  }
  return !carried.empty();
}

/// Runs a chain of three processes whose parts of the result are `shares` elements long; 0 for all of them.
void check(int64_t count, const std::vector<int64_t>& shares) {
  std::vector<std::vector<float>> blocks(3, std::vector<float>(static_cast<size_t>(count)));
  std::vector<HostView> all;
  for (size_t i = 0; i < blocks.size(); ++i) {
    for (size_t k = 0; k < blocks[i].size(); ++k) blocks[i][k] = 1.0F / static_cast<float>(1 + i + 3 * k);
    all.push_back(view(blocks[i]));
  }
  std::vector<float> expected(static_cast<size_t>(count));
  all_reduce(Reduction::kSum, all, view(expected));

  std::vector<std::unique_ptr<Process>> processes;
  int64_t begin = 0;
  for (size_t i = 0; i < 3; ++i) {
    const bool is_whole = shares[i] == 0;
    processes.push_back(std::make_unique<Process>(i > 0, i < 2, blocks[i], is_whole ? 0 : begin,
                                                  is_whole ? count : shares[i], is_whole ? count : begin));
    begin += shares[i];
  }
  for (bool goes_on = true; goes_on;) {
    goes_on = false;
    for (const auto& each : processes) {
      goes_on = !each->chain->advance() || goes_on;
      for (const Message& message : each->chain->begin_messages()) {
        each->begun.at(message.channel).push_back(message);
        EXPECT_LE(each->begun.at(message.channel).size(), static_cast<size_t>(kSlots));
      }
    }
    bool has_carried = false;
    for (size_t i = 0; i + 1 < processes.size(); ++i) {
      has_carried |= carry(*processes[i], MessageChain::kToAfter, *processes[i + 1], MessageChain::kFromBefore);
      has_carried |= carry(*processes[i + 1], MessageChain::kToBefore, *processes[i], MessageChain::kFromAfter);
    }
    ASSERT_TRUE(has_carried || !goes_on);
  }
  begin = 0;
  for (size_t i = 0; i < processes.size(); ++i) {
    const auto from = expected.begin() + begin;
    const std::vector<float>& result = processes[i]->result;
    EXPECT_EQ(result, std::vector<float>(from, from + static_cast<int64_t>(result.size())));
    begin += shares[i];
  }
}

TEST(MessageChain, ReturnsTheBitsOfASingleProcess) {
  for (const int64_t count : {0, 1, 16, 17, 1000}) check(count, {0, 0, 0});
}

TEST(MessageChain, GivesEachProcessOnlyItsShare) { check(999, {100, 600, 299}); }

}  // namespace
}  // namespace artifex_devices
