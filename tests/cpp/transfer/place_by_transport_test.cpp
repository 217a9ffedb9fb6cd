// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <thread>

#include "artifex_devices/base/error.h"
#include "artifex_devices/transfer/device_get.h"
#include "artifex_devices/transfer/device_put.h"
#include "artifex_devices/transfer/place.h"
#include "host_arrays.h"
#include "queue_transport.h"

namespace artifex_devices {
namespace {

using test::named;
using test::QueueTransport;
using test::Random;
using test::values;

/// Two processes with two devices each, whose parts of each test run in two threads.
class PlaceByTransport : public testing::Test {
 protected:
  PlaceByTransport() {
    const auto machine = Machine::from_synthetic("pack:2 [numa] core:2 pu:1");
    ClientOptions options;
    options.processes = {Client::describe(*machine, 2), Client::describe(*machine, 2)};
    options.num_devices = 2;
    for (const ProcessIndex process : IdRange<ProcessIndex>(2)) {
      options.process_index = process;
      clients_.push_back(Client::make(machine, options));
    }
  }

  /// Runs `body(client, options)` of each process; returns the text of what it throws, or "".
  template <class Body>
  std::vector<std::string> run(Body&& body) {
    std::vector<std::string> errors(2);
    std::vector<std::thread> threads;
    for (size_t i = 0; i < 2; ++i) {
      threads.emplace_back([&, i] {
        try {
          body(clients_[i], PlacementOptions{.transport = &transports_[i]});
        } catch (const std::exception& error) {
          errors[i] = error.what();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    return errors;
  }

  const std::vector<std::string> none_ = {"", ""};
  test::Wires wires_;
  QueueTransport transports_[2] = {QueueTransport(wires_), QueueTransport(wires_)};
  std::vector<ClientRef> clients_;
  Random random_{3};
  const HostView host_ = test::dense(random_, {64, 64}, DType::kFloat32);
};

TEST_F(PlaceByTransport, ExchangesTheParts) {
  const auto errors = run([&](const ClientRef& client, const PlacementOptions& options) {
    const ArrayRef rows = device_put(host_, named(client, {4}, {"a"}), true);
    const ArrayRef columns = place(rows, {named(client, {4}, {"", "a"}), true}, options);
    const DeviceList& devices = *columns->sharding()->devices();
    for (int64_t i = 0; i < devices.addressable_count(); ++i) {
      test::expect_shard(columns, devices.addressable_position(i), host_);
    }
    EXPECT_EQ(values(*device_get(place(columns, {named(client, {4}, {}), true}, options))), values(host_));
  });
  EXPECT_EQ(errors, none_);
  EXPECT_EQ(transports_[0].exchanged.size(), 2U);
  EXPECT_EQ(transports_[0].exchanged, transports_[1].exchanged);
  EXPECT_EQ(transports_[0].given_up, 0);
}

TEST_F(PlaceByTransport, KeepsPackedMessagesWithinTheBudget) {
  const HostView long_rows = test::dense(random_, {4, 8 << 20}, DType::kInt8);
  for (QueueTransport& transport : transports_) transport.budget = int64_t{16} << 20;
  const auto errors = run([&](const ClientRef& client, const PlacementOptions& options) {
    // Each process has half of each row: what it receives must be unpacked.
    const ArrayRef halves = device_put(long_rows, named(client, {4}, {"", "a"}), true);
    const ArrayRef whole = place(halves, {named(client, {4}, {}), true}, options);
    EXPECT_TRUE(values(*device_get(whole)) == values(long_rows));
  });
  EXPECT_EQ(errors, none_);
  // Each receives 16 MiB, in messages of at most 8.
  for (const QueueTransport& transport : transports_) EXPECT_EQ(transport.most_bytes, 8 << 20);
}

TEST_F(PlaceByTransport, TakesAnArrayOfAnotherWorldAsAValueThatEachProcessHas) {
  const auto errors = run([&](const ClientRef& client, const PlacementOptions& options) {
    const ClientRef other = test::make_world(1, 2);
    const ArrayRef source = device_put(host_, named(other, {2}, {"a"}), true);
    const ArrayRef placed = place(source, {named(client, {4}, {}), true}, options);
    EXPECT_EQ(values(*device_get(placed)), values(host_));
  });
  EXPECT_EQ(errors, none_);
  EXPECT_EQ(transports_[0].agreed.size(), 1U);
  EXPECT_TRUE(transports_[0].exchanged.empty());
}

TEST_F(PlaceByTransport, RefusesValuesThatDifferInAllProcesses) {
  const HostView another = test::dense(random_, {64, 64}, DType::kFloat32);
  const auto put = [&](const ClientRef& client, const PlacementOptions& options) {
    place(client->process_index() == ProcessIndex(1) ? another : host_, {named(client, {4}, {}), true}, options);
  };
  const std::string text =
      "device_put of float32(64, 64) to " + named(clients_[0], {4}, {})->to_string() +
      ": the processes do not have the same value; expected equal shapes, dtypes and bits, got another value in "
      "process 1 than in most; give each process's own part to make_array_from_process_local_data";
  EXPECT_EQ(run(put), (std::vector<std::string>{text, text}));
  for (QueueTransport& transport : transports_) transport.compares = false;
  EXPECT_EQ(run(put), none_);
}

TEST_F(PlaceByTransport, ReportsToTheOthersThatAProcessHasNoMemory) {
  clients_[1]->device(DeviceId(2))->set_bytes_limit(1 << 10);
  const HostView small = test::dense(random_, {4, 64}, DType::kFloat32);
  const auto errors = run([&](const ClientRef& client, const PlacementOptions& options) {
    const ArrayRef rows = device_put(small, named(client, {4}, {"a"}), true);
    place(rows, {named(client, {4}, {}), true}, options);
  });
  EXPECT_NE(errors[0].find("the processes do not do the same: "), std::string::npos);
  EXPECT_NE(errors[0].find("RESOURCE_EXHAUSTED"), std::string::npos);
  EXPECT_NE(errors[1].find("RESOURCE_EXHAUSTED"), std::string::npos);
  EXPECT_EQ(transports_[0].given_up, 1);
}

TEST_F(PlaceByTransport, GivesUpMessagesWhereThePlansDiffer) {
  const auto errors = run([&](const ClientRef& client, const PlacementOptions& options) {
    const ArrayRef rows = device_put(host_, named(client, {4}, {"a"}), true);
    place(rows,
          {client->process_index() == ProcessIndex(0) ? named(client, {4}, {}) : named(client, {4}, {"", "a"}), true},
          options);
  });
  for (const std::string& error : errors) EXPECT_NE(error.find("do not do the same"), std::string::npos);
  EXPECT_EQ(transports_[0].given_up, 1);
  EXPECT_EQ(transports_[1].given_up, 1);
}

}  // namespace
}  // namespace artifex_devices
