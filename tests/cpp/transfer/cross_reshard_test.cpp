// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/transfer/cross_reshard.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "artifex_devices/base/error.h"
#include "artifex_devices/transfer/device_get.h"
#include "artifex_devices/transfer/device_put.h"
#include "artifex_devices/transfer/planned_copies.h"
#include "host_arrays.h"

namespace artifex_devices {
namespace {

using test::bytes_in_use;
using test::error_of;
using test::named;
using test::pick;
using test::Random;
using test::values;

std::shared_ptr<const Machine> machine() { return Machine::from_synthetic("pack:2 [numa] core:2 pu:1"); }

/// Processes with so many devices each, by the client that each would have.
std::vector<ClientRef> processes(const std::vector<int64_t>& counts) {
  ClientOptions options;
  for (const int64_t count : counts) options.processes.push_back(Client::describe(*machine(), count));
  std::vector<ClientRef> clients;
  for (const int64_t count : counts) {
    options.process_index = ProcessIndex(std::ssize(clients));
    options.num_devices = count;
    clients.push_back(Client::make(machine(), options));
  }
  return clients;
}

void expect_local_shards(const ArrayRef& array, const HostView& expected) {
  const DeviceList& devices = *array->sharding()->devices();
  for (int64_t i = 0; i < devices.addressable_count(); ++i) {
    ASSERT_NO_FATAL_FAILURE(test::expect_shard(array, devices.addressable_position(i), expected));
  }
}

/// Carries all messages of all processes; by sender and receiver the bytes.
std::map<std::pair<ProcessIndex, ProcessIndex>, int64_t> exchange(std::vector<CrossReshard>& parts) {
  std::map<std::pair<ProcessIndex, ProcessIndex>, std::vector<std::vector<std::byte>>> wires;
  std::map<std::pair<ProcessIndex, ProcessIndex>, int64_t> sent;
  for (CrossReshard& part : parts) part.begin();
  for (CrossReshard& part : parts) {
    const ProcessIndex own = part.client()->process_index();
    for (size_t i = 0; i < part.sends().size(); ++i) {
      const auto [peer, bytes] = part.sends()[i];
      EXPECT_NE(peer, own);
      EXPECT_LE(bytes, CrossReshard::kMessageBytes);
      std::vector<std::byte> packed(static_cast<size_t>(bytes));
      part.pack(static_cast<int64_t>(i), packed.data());
      if (const BufferRef lies = part.send_in_place(static_cast<int64_t>(i)); lies.block) {
        EXPECT_EQ(std::memcmp(lies.host_data(), packed.data(), packed.size()), 0);
      }
      sent[{own, peer}] += bytes;
      wires[{own, peer}].push_back(std::move(packed));
    }
  }
  for (CrossReshard& part : parts) {
    const ProcessIndex own = part.client()->process_index();
    std::map<ProcessIndex, size_t> next;
    for (size_t i = 0; i < part.receives().size(); ++i) {
      const auto [peer, bytes] = part.receives()[i];
      const auto& packed = wires[{peer, own}].at(next[peer]++);
      EXPECT_EQ(static_cast<int64_t>(packed.size()), bytes);
      if (const BufferRef lies = part.receive_in_place(static_cast<int64_t>(i)); lies.block) {
        std::memcpy(lies.host_data(), packed.data(), packed.size());
      } else {
        part.unpack(static_cast<int64_t>(i), packed.data());
      }
    }
    for (auto& [pair, messages] : wires) {
      if (pair.second != own) continue;
      EXPECT_EQ(messages.size(), next[pair.first]);
    }
  }
  return sent;
}

/// Bytes that each of two processes sends to the other, as exchange() returns them.
std::map<std::pair<ProcessIndex, ProcessIndex>, int64_t> both_ways(int64_t bytes) {
  const ProcessIndex first(0);
  const ProcessIndex second(1);
  return {{{first, second}, bytes}, {{second, first}, bytes}};
}

TEST(CrossReshard, MatchesTheExampleInTheHeader) {
  const auto clients = processes({1, 1});
  Random random(1);
  const HostView source = test::dense(random, {8}, DType::kFloat32);
  std::vector<CrossReshard> parts;
  for (const ClientRef& client : clients) {
    parts.emplace_back(device_put(source, named(client, {2}, {"a"}), true), named(client, {2}, {}), ReshardOptions{});
  }
  EXPECT_EQ(numbers(parts[0].processes()), (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(parts[0].identity(), parts[1].identity());
  EXPECT_EQ(parts[0].plan().bytes_over(LinkKind::kOtherProcess), 32);
  EXPECT_EQ(parts[0].plan().bytes_over(LinkKind::kOtherHost), 0);
  ASSERT_EQ(parts[1].sends().size(), 1U);
  EXPECT_EQ(parts[1].sends()[0].peer, ProcessIndex(0));
  EXPECT_EQ(parts[1].sends()[0].bytes, 16);
  EXPECT_EQ(exchange(parts), both_ways(16));
  for (CrossReshard& part : parts) {
    const ArrayRef moved = part.finish();
    EXPECT_FALSE(moved->sharding()->is_fully_addressable());
    EXPECT_EQ(values(*device_get(moved)), values(source));
  }
}

TEST(CrossReshard, MovesRandomShardingsBetweenRandomProcesses) {
  Random random(20);
  int crossing = 0;
  const int64_t listed = PlannedCopies::most_listed;
  for (int round = 0; round < 150; ++round) {
    PlannedCopies::most_listed = round % 2 == 0 ? 0 : listed;
    std::vector<int64_t> counts;
    for (int64_t p = pick(random, 2, 4); p > 0; --p) counts.push_back(pick(random, 1, 4));
    const auto clients = processes(counts);
    const Dims shape = test::random_shape(random);
    const HostView source = test::dense(random, shape, test::random_dtype(random));
    const bool uneven = pick(random, 0, 1) == 1;
    const uint64_t seed = random();
    std::vector<CrossReshard> parts;
    int64_t planned = 0;
    std::string text;
    for (const ClientRef& client : clients) {
      Random same(seed);
      const test::Layout from = test::random_layout(same, client, shape, uneven);
      const test::Layout to = test::random_layout(same, client, shape, uneven);
      text = from.text + " to " + to.text;
      parts.emplace_back(device_put(source, from.sharding, true), to.sharding, ReshardOptions{});
      planned = parts.back().plan().bytes_over(LinkKind::kOtherProcess);
    }
    SCOPED_TRACE(fmt::format("round {}: {} {}", round, to_string(shape), text));
    std::set<std::string> identities;
    int64_t sent = 0;
    for (const CrossReshard& part : parts) {
      identities.insert(part.identity());
      EXPECT_EQ(part.plan().bytes_over(LinkKind::kOtherProcess), planned);
    }
    EXPECT_EQ(identities.size(), 1U);
    for (const auto& [pair, bytes] : exchange(parts)) sent += bytes;
    EXPECT_EQ(sent, planned);
    crossing += sent > 0 ? 1 : 0;
    for (CrossReshard& part : parts) {
      const ArrayRef moved = part.finish();
      moved->block_until_ready();
      expect_local_shards(moved, source);
    }
  }
  EXPECT_GT(crossing, 75);
  PlannedCopies::most_listed = listed;
}

TEST(CrossReshard, MatchesMessagesOfManyBoxesToThePlan) {
  // 256 + 256 devices: each process sends 65,536 boxes of 192 bytes, 12 MiB; the second of 2 messages begins amid those
  // into one buffer.
  const auto clients = processes({256, 256});
  Random random(3);
  const HostView source = test::dense(random, {512, 512, 12}, DType::kComplex128);
  std::vector<CrossReshard> parts;
  for (const ClientRef& client : clients) {
    parts.emplace_back(device_put(source, named(client, {512}, {"a"}), true), named(client, {512}, {"", "a"}),
                       ReshardOptions{});
  }
  const int64_t crossing = int64_t{256} * 256 * 192;
  EXPECT_EQ(parts[0].sends().size(), 2U);
  EXPECT_EQ(exchange(parts), both_ways(crossing));
  for (CrossReshard& part : parts) {
    const ArrayRef moved = part.finish();
    moved->block_until_ready();
    expect_local_shards(moved, source);
  }
}

TEST(CrossReshard, SplitsLongBoxesIntoMessages) {
  const auto clients = processes({1, 1});
  const int64_t row = CrossReshard::kMessageBytes + 4096;  // bytes: longer than one message
  Random random(3);
  const HostView source = test::dense(random, {4, 2, row / 4}, DType::kFloat32);
  std::vector<CrossReshard> parts;
  for (const ClientRef& client : clients) {
    parts.emplace_back(device_put(source, named(client, {2}, {"a"}), true), named(client, {2}, {"", "a"}),
                       ReshardOptions{});
  }
  std::vector<int64_t> sizes;
  for (const CrossReshard::Message& message : parts[0].sends()) sizes.push_back(message.bytes);
  EXPECT_EQ(sizes, (std::vector<int64_t>{CrossReshard::kMessageBytes, 4096, CrossReshard::kMessageBytes, 4096}));
  exchange(parts);
  for (CrossReshard& part : parts) {
    const ArrayRef moved = part.finish();
    moved->block_until_ready();
    expect_local_shards(moved, source);
  }
}

TEST(CrossReshard, JoinsSmallBoxesInAMessage) {
  const auto clients = processes({4, 4});
  Random random(4);
  const HostView source = test::dense(random, {8, 8}, DType::kInt16);
  CrossReshard part(device_put(source, named(clients[0], {8}, {"a"}), true), named(clients[0], {8}, {"", "a"}),
                    ReshardOptions{});
  ASSERT_EQ(part.sends().size(), 1U);  // 16 boxes of one element
  EXPECT_EQ(part.sends()[0].bytes, 32);
  EXPECT_FALSE(part.send_in_place(0).block);
}

TEST(CrossReshard, UsesReshardWhenNoMessagesAreNeeded) {
  const auto clients = processes({2, 2});
  Random random(5);
  const HostView source = test::dense(random, {8, 4}, DType::kFloat32);
  for (const ClientRef& client : clients) {
    const ArrayRef whole = device_put(source, named(client, {4}, {}), true);
    const ArrayRef cut = reshard(whole, named(client, {4}, {"", "a"}), {});
    cut->block_until_ready();
    expect_local_shards(cut, source);
    EXPECT_NE(error_of<NotAddressable>([&] {
                reshard(cut, named(client, {4}, {"a"}), {});
              }).find("parts of the Array are in other processes"),
              std::string::npos);
    EXPECT_NE(error_of<NotAddressable>([&] { device_get(cut); }).find("2 of 4 belong to other processes"),
              std::string::npos);
    EXPECT_EQ(values(*device_get(whole)), values(source));
  }
}

TEST(CrossReshard, ChargesAndFreesOnlyLocalMemory) {
  const auto clients = processes({2, 2});
  Random random(6);
  const HostView source = test::dense(random, {8, 4}, DType::kFloat32);
  std::vector<CrossReshard> parts;
  for (const ClientRef& client : clients) {
    parts.emplace_back(device_put(source, named(client, {4}, {"a"}), true), named(client, {4}, {}),
                       ReshardOptions{.donate = true});
  }
  EXPECT_EQ(bytes_in_use(clients[1]), (test::Bytes{0, 0, 32, 32}));
  exchange(parts);
  EXPECT_EQ(bytes_in_use(clients[1]), (test::Bytes{0, 0, 160, 160}));
  ArrayRef moved = parts[1].finish();
  EXPECT_EQ(bytes_in_use(clients[1]), (test::Bytes{0, 0, 128, 128}));
  parts.clear();
  EXPECT_EQ(bytes_in_use(clients[0]), (test::Bytes{0, 0, 0, 0}));  // never finished
  moved.reset();
  EXPECT_EQ(bytes_in_use(clients[1]), (test::Bytes{0, 0, 0, 0}));
}

}  // namespace
}  // namespace artifex_devices
