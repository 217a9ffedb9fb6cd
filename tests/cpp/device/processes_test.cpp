// SPDX-License-Identifier: Apache-2.0
// Worlds that several processes share, as one of them sees them.
#include <gtest/gtest.h>

#include <vector>

#include "../base/message_of.h"
#include "artifex_devices/base/error.h"
#include "artifex_devices/device/client.h"
#include "artifex_devices/device/device_list.h"
#include "artifex_devices/device/emulated_gpu/emulated_gpu_backend.h"
#include "artifex_devices/device/memory.h"

namespace artifex_devices {
namespace {

std::shared_ptr<const Machine> machine(int nodes) {
  return Machine::from_synthetic(nodes == 1 ? "numa:1 core:4 pu:1" : "pack:2 [numa] core:2 pu:1");
}

/// Process `own` of processes that have 2 devices on one node, and 3 on two.
std::shared_ptr<Client> shared(int own) {
  ClientOptions options;
  options.processes = {Client::describe(*machine(1), 2), Client::describe(*machine(2), 3)};
  options.processes[0].host = "left";
  options.processes[1].host = "right";
  options.process_index = ProcessIndex(own);
  options.num_devices = options.processes[static_cast<size_t>(own)].num_devices;
  return Client::make(machine(own + 1), options);
}

TEST(Processes, NumberDevicesAndMemoriesConsistently) {
  for (const int own : {0, 1}) {
    const auto client = shared(own);
    ASSERT_EQ(client->device_count(), 5);
    EXPECT_EQ(client->arenas(), 3);
    EXPECT_EQ(client->process_index(), ProcessIndex(own));
    EXPECT_EQ(client->process_count(), 2);
    EXPECT_TRUE(client->is_multi_process());
    EXPECT_EQ(client->local_device_count(), own == 0 ? 2 : 3);
    EXPECT_EQ(client->default_device()->id(), DeviceId(own == 0 ? 0 : 2));
    std::vector<int64_t> arenas;
    std::vector<int64_t> local_ids;
    for (int64_t i = 0; i < 5; ++i) {
      const Device& device = *client->device(DeviceId(i));
      EXPECT_EQ(device.id(), DeviceId(i));
      EXPECT_EQ(device.process_index(), ProcessIndex(i < 2 ? 0 : 1));
      EXPECT_EQ(device.is_addressable(), device.process_index() == ProcessIndex(own));
      EXPECT_EQ(client->has_arena(device.arena_index()), device.is_addressable());
      arenas.push_back(device.arena_index().number());
      local_ids.push_back(device.local_hardware_id());
    }
    EXPECT_EQ(arenas, (std::vector<int64_t>{0, 0, 1, 1, 2}));
    EXPECT_EQ(local_ids, (std::vector<int64_t>{0, 1, 0, 1, 2}));
    EXPECT_EQ(client->device(DeviceId(4))->domain().cpus.to_string(), "2-3");
    EXPECT_EQ(client->device(DeviceId(4))->memory_bytes(), client->process(ProcessIndex(1)).arena_memory_bytes[1]);
    EXPECT_EQ(client->device(DeviceId(2))->memory_bytes(), client->process(ProcessIndex(1)).arena_memory_bytes[0] / 2);
    EXPECT_EQ(client->host_of_process(ProcessIndex(0)), 0);
    EXPECT_EQ(client->host_of_process(ProcessIndex(1)), 1);
  }
}

TEST(Processes, ShareAHostNumberOnOneMachine) {
  ClientOptions options;
  for (const char* host : {"a", "b", "a"}) {
    options.processes.push_back(Client::describe(*machine(1), 1));
    options.processes.back().host = host;
  }
  options.num_devices = 1;
  const auto client = Client::make(machine(1), options);
  EXPECT_EQ(client->host_of_process(ProcessIndex(0)), 0);
  EXPECT_EQ(client->host_of_process(ProcessIndex(1)), 1);
  EXPECT_EQ(client->host_of_process(ProcessIndex(2)), 0);
  const auto alone = Client::make(machine(1), {});
  EXPECT_EQ(alone->process_count(), 1);
  EXPECT_EQ(alone->host_of_process(ProcessIndex(0)), 0);
  EXPECT_FALSE(alone->is_multi_process());
}

TEST(Processes, HaveNoMemoryOfOtherProcesses) {
  const auto client = shared(0);
  EXPECT_EQ(message_of([&] { client->device(DeviceId(3))->memory(MemoryKind::kDevice).space(); }),
            "memory: cpu:3 belongs to process 1; expected a device of this process, 0; call it there");
  EXPECT_EQ(&client->device(DeviceId(1))->memory(MemoryKind::kDevice).space(), &client->device(DeviceId(1))->arena());
}

TEST(Processes, RefuseInconsistentDescriptions) {
  ClientOptions options;
  options.processes = {Client::describe(*machine(1), 2), Client::describe(*machine(2), 3)};
  options.process_index = ProcessIndex(2);
  EXPECT_EQ(message_of([&] { Client::make(machine(1), options); }),
            "make_client: process_index is 2; expected 0 to 1, one of the 2 processes; number them from 0");
  options.process_index = ProcessIndex(0);
  options.num_devices = 3;
  EXPECT_EQ(
      message_of([&] { Client::make(machine(1), options); }),
      "make_client: process 0, the current process, is described as 2 devices on 1 CPU domains; expected 3 on 1; pass "
      "the result of Client::describe in this process");
  options.num_devices = 2;
  options.processes[1].arena_memory_bytes.pop_back();
  EXPECT_EQ(message_of([&] { Client::make(machine(1), options); }),
            "make_client: process 1 is described by 2 CPU domains and 1 memories; expected at least one domain, and a "
            "number of bytes for each memory that they name; pass the result of Client::describe in that process");
}

TEST(Processes, KnowTheGpusOfOthers) {
  const BackendRef mine = make_emulated_gpu_backend({.device_kind = "small", .memory_bytes = 1000});
  const BackendRef its = make_emulated_gpu_backend({.device_kind = "big", .memory_bytes = 5000});
  ClientOptions options;
  options.backend = mine;
  options.num_devices = 1;
  options.processes = {Client::describe(*machine(1), 1, mine.get()), Client::describe(*machine(1), 2, its.get())};
  const auto client = Client::make(machine(1), options);
  EXPECT_EQ(client->device(DeviceId(0))->device_kind(), "small");
  EXPECT_EQ(client->device(DeviceId(0))->memory_bytes(), 1000);
  EXPECT_EQ(client->device(DeviceId(0))->bytes_limit(), 1000);
  EXPECT_EQ(client->device(DeviceId(2))->device_kind(), "big");
  EXPECT_EQ(client->device(DeviceId(2))->memory_bytes(), 5000);
  EXPECT_EQ(client->device(DeviceId(2))->platform(), "gpu");
  EXPECT_FALSE(client->device(DeviceId(2))->is_addressable());
  options.processes[1].devices.pop_back();
  EXPECT_EQ(message_of([&] { Client::make(machine(1), options); }),
            "make_client: process 1 describes 1 of 2 devices with separate memory; expected 2; pass the result of "
            "Client::describe in that process with the same backend");
}

TEST(Processes, DistinguishTheirOwnDevicesInLists) {
  const auto client = shared(1);
  const auto list_of = [&](const std::vector<int64_t>& ids) {
    std::vector<Device*> devices;
    for (const int64_t id : ids) devices.push_back(client->device(DeviceId(id)));
    return DeviceList::make(devices, "test");
  };
  const auto all = list_of({4, 0, 2, 1, 3});
  EXPECT_FALSE(all->is_fully_addressable());
  EXPECT_FALSE(all->on_one_arena());
  ASSERT_EQ(all->addressable_count(), 3);
  EXPECT_EQ(all->addressable_position(0), Position(0));
  EXPECT_EQ(all->addressable_position(1), Position(2));
  EXPECT_EQ(all->addressable_position(2), Position(4));
  EXPECT_EQ(numbers(all->processes()), (std::vector<int64_t>{0, 1}));
  const auto own = list_of({3, 2});
  EXPECT_TRUE(own->is_fully_addressable());
  EXPECT_TRUE(own->on_one_arena());
  EXPECT_EQ(own->addressable_position(1), Position(1));
  const auto others = list_of({1, 0});
  EXPECT_FALSE(others->is_fully_addressable());
  EXPECT_EQ(others->addressable_count(), 0);
  EXPECT_EQ(numbers(others->processes()), (std::vector<int64_t>{0}));
  EXPECT_TRUE(list_of({0, 2, 3})->on_one_arena());
}

}  // namespace
}  // namespace artifex_devices
