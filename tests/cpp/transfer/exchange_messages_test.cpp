// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/transfer/exchange_messages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "artifex_devices/sharding/single_device_sharding.h"
#include "artifex_devices/transfer/device_put.h"
#include "host_arrays.h"

namespace artifex_devices {
namespace {

using test::named;

constexpr int64_t kMessage = CrossReshard::kMessageBytes;

/// Records the messages in the order in which they begin, and ends the oldest one at each wait.
class RecordedExchange : public Exchange {
 public:
  void begin(const std::string&) override {}
  void send(BufferRef, int64_t bytes, ProcessIndex) override { add('s', bytes); }
  void receive(BufferRef, int64_t bytes, ProcessIndex) override { add('r', bytes); }
  std::vector<int64_t> wait_some() override {
    const auto oldest = in_flight_.begin();
    const int64_t number = oldest->first;
    bytes_[oldest->second.first] -= oldest->second.second;
    in_flight_.erase(oldest);
    begun += ' ';
    return {number};
  }
  void finish() override {}
  void give_up(const std::exception&) override {}

  std::string begun;             // "rs r s": a receive and a send, a wait, a receive, a wait, a send
  std::map<char, int64_t> most;  // bytes in flight at a time

 private:
  void add(char direction, int64_t bytes) {
    in_flight_.emplace(next_++, std::pair(direction, bytes));
    bytes_[direction] += bytes;
    most[direction] = std::max(most[direction], bytes_[direction]);
    begun += direction;
  }

  std::map<int64_t, std::pair<char, int64_t>> in_flight_;
  std::map<char, int64_t> bytes_;
  int64_t next_ = 0;
};

/// The clients of two processes with two devices each.
std::vector<ClientRef> processes() {
  const auto machine = Machine::from_synthetic("pack:2 [numa] core:2 pu:1");
  ClientOptions options;
  options.processes = {Client::describe(*machine, 2), Client::describe(*machine, 2)};
  options.num_devices = 2;
  std::vector<ClientRef> clients;
  for (const ProcessIndex process : IdRange<ProcessIndex>(2)) {
    options.process_index = process;
    clients.push_back(Client::make(machine, options));
  }
  return clients;
}

/// How the first process moves 64 MiB from columns to rows: two packed messages of 8 MiB each way, with two boxes each.
RecordedExchange move_to_rows(int64_t budget) {
  const ClientRef client = processes()[0];
  test::Random random(1);
  const HostView rows = test::dense(random, {4, 2 * kMessage}, DType::kInt8);
  CrossReshard part(device_put(rows, named(client, {4}, {"", "a"}), true), named(client, {4}, {"a"}), ReshardOptions{});
  part.begin();
  RecordedExchange exchange;
  exchange_messages(part, exchange, budget);
  return exchange;
}

TEST(ExchangeMessages, BeginsAllThatFitIntoHalfOfTheBudgetInEachDirection) {
  RecordedExchange exchange = move_to_rows(4 * kMessage);
  EXPECT_EQ(exchange.begun, "rrss    ");
  EXPECT_EQ(exchange.most['r'], 2 * kMessage);
  EXPECT_EQ(exchange.most['s'], 2 * kMessage);
}

TEST(ExchangeMessages, BeginsTheNextMessageOfADirectionWhenOneOfItHasEnded) {
  RecordedExchange exchange = move_to_rows(2 * kMessage);
  EXPECT_EQ(exchange.begun, "rs r s  ");
  EXPECT_EQ(exchange.most['r'], kMessage);
  EXPECT_EQ(exchange.most['s'], kMessage);
}

TEST(ExchangeMessages, HasOneMessageInEachDirectionWhateverTheBudgetIs) {
  EXPECT_EQ(move_to_rows(4 * kMessage - 2).begun, "rs r s  ");
  EXPECT_EQ(move_to_rows(0).begun, "rs r s  ");
}

TEST(ExchangeMessages, MessagesInPlaceNeedNoBudget) {
  const std::vector<ClientRef> clients = processes();
  test::Random random(2);
  const HostView rows = test::dense(random, {3, kMessage}, DType::kInt8);
  for (const size_t process : {size_t{0}, size_t{1}}) {
    const ClientRef& client = clients[process];
    const ShardingRef first = SingleDeviceSharding::make(client->device(DeviceId(0)));
    const ShardingRef last = SingleDeviceSharding::make(client->device(DeviceId(3)));
    CrossReshard part(device_put(rows, first, true), last, ReshardOptions{});
    part.begin();
    RecordedExchange exchange;
    exchange_messages(part, exchange, 0);
    EXPECT_EQ(exchange.begun, process == 0 ? "sss   " : "rrr   ");
  }
}

}  // namespace
}  // namespace artifex_devices
