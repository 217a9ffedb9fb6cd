// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/device/client.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "../base/message_of.h"
#include "artifex_devices/base/error.h"
#include "artifex_devices/base/stream_copy.h"
#include "artifex_devices/base/worker_pool.h"
#include "artifex_devices/device/platform_version.h"
#include "artifex_devices/topology/hwloc_version.h"
#include "artifex_devices/topology/machine_objects.h"

namespace artifex_devices {
namespace {

TEST(Client, HasOneDevicePerCpuDomainByDefault) {
  const auto client = Client::make(Machine::from_synthetic("pack:2 numa:2 core:2 pu:1"), {});
  ASSERT_EQ(client->device_count(), 4);
  EXPECT_EQ(client->arenas(), 4);
  for (int64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(client->device(DeviceId(i))->id(), DeviceId(i));
    EXPECT_EQ(client->device(DeviceId(i))->lane(), LaneId(i));
    EXPECT_EQ(client->device(DeviceId(i))->arena_index(), ArenaIndex(i));
    EXPECT_EQ(client->device(DeviceId(i))->memory_bytes(), int64_t{1} << 30);
    EXPECT_EQ(&client->device(DeviceId(i))->client(), client.get());
  }
  EXPECT_EQ(client->device(DeviceId(1))->domain().cpus.to_string(), "2-3");
}

TEST(Client, StoresBypassTheCacheFromAnEighthOfALanesLastLevelCache) {
  Client::make(Machine::from_synthetic("pu:1"), {});  // the first client looks at the machine
  const auto machine = Machine::live();
  int64_t least = INT64_MAX;
  for (const CpuDomain& domain : machine->cpu_domains()) {
    least = std::min(least, last_level_cache_bytes(*machine, domain.cpus));
  }
  EXPECT_EQ(stream_bytes(), least > 0 ? least / 8 : int64_t{4} << 20);
}

TEST(Client, SpreadsLargeSharedResultsOverAllNodes) {
  const auto two = Client::make(Machine::from_synthetic("numa:2 core:2 pu:1"), {});
  const Device& last = *two->device(DeviceId(1));
  constexpr int64_t kBig = int64_t{8} << 20;
  EXPECT_EQ(&two->shared_arena(last, kBig), &Arena::interleaved());
  EXPECT_EQ(&two->shared_arena(last, 4096), &last.arena()) << "small results stay in the caches of their readers";
  const auto one = Client::make(Machine::from_synthetic("numa:1 core:2 pu:1"), {.num_devices = 4});
  EXPECT_EQ(&one->shared_arena(*one->device(DeviceId(3)), kBig), &one->device(DeviceId(3))->arena());

  const MemorySpaceStats before = Arena::interleaved().stats();
  const BlockRef block = two->shared_arena(last, kBig).allocate(kBig);
  EXPECT_EQ(Arena::interleaved().stats().num_allocs, before.num_allocs + 1);
  EXPECT_EQ(Arena::interleaved().stats().bytes_in_use, before.bytes_in_use + kBig);
  EXPECT_EQ(static_cast<Arena*>(block->space())->node(), Arena::kAllNodes);
}

TEST(Client, DividesEightDevicesOverTwoDomains) {
  const auto client = Client::make(Machine::from_synthetic("numa:2(memory=8GB) core:4 pu:1"), {.num_devices = 8});
  for (int64_t i = 0; i < 8; ++i) {
    EXPECT_EQ(client->device(DeviceId(i))->arena_index(), ArenaIndex(i < 4 ? 0 : 1));
    EXPECT_EQ(client->device(DeviceId(i))->memory_bytes(), 2'000'000'000);
  }
}

TEST(Client, SpreadsUnevenCountsInOrder) {
  const auto three = Client::make(Machine::from_synthetic("numa:2 pu:2"), {.num_devices = 3});
  EXPECT_EQ(three->device(DeviceId(0))->lane(), LaneId(0));
  EXPECT_EQ(three->device(DeviceId(1))->lane(), LaneId(0));
  EXPECT_EQ(three->device(DeviceId(2))->lane(), LaneId(1));
  const auto one = Client::make(Machine::from_synthetic("numa:2 pu:2"), {.num_devices = 1});
  EXPECT_EQ(one->device(DeviceId(0))->lane(), LaneId(0));
  EXPECT_EQ(one->device(DeviceId(0))->memory_bytes(), int64_t{1} << 30);
}

TEST(Client, DefaultsToTheLargerOfTwoMemories) {
  const auto client = Client::make(Machine::from_synthetic("pack:2 [numa(memory=1GB)] [numa(memory=4GB)] core:4 pu:2"),
                                   {.num_devices = 4});
  EXPECT_EQ(client->arenas(), 2);
  EXPECT_EQ(client->device(DeviceId(0))->memory_bytes(), 2'000'000'000);
  EXPECT_EQ(client->device(DeviceId(3))->arena_index(), ArenaIndex(1));
}

TEST(Client, PrintsDevicesAsJax) {
  const auto client = Client::make(Machine::live(), {.num_devices = 3});
  const Device& device = *client->device(DeviceId(2));
  EXPECT_EQ(device.to_string(), "cpu:2");
  EXPECT_EQ(device.repr(), "CpuDevice(id=2)");
  EXPECT_EQ(device.platform(), "cpu");
  EXPECT_EQ(device.device_kind(), "cpu");
  EXPECT_EQ(device.process_index(), ProcessIndex(0));
  EXPECT_EQ(device.local_hardware_id(), 2);
  EXPECT_EQ(client->platform(), "cpu");
}

TEST(Client, HasItsOwnIdentityAndSharesMemory) {
  const auto a = Client::make(Machine::live(), {.num_devices = 2});
  const auto b = Client::make(Machine::live(), {.num_devices = 2});
  EXPECT_NE(a->uid(), b->uid());
  EXPECT_NE(a->device(DeviceId(0)), b->device(DeviceId(0)));
  EXPECT_EQ(&a->device(DeviceId(0))->arena(), &b->device(DeviceId(0))->arena());
}

TEST(Client, RefusesCountsOutOfRange) {
  const auto machine = Machine::from_synthetic("pu:2");
  for (const int64_t count : {int64_t{0}, int64_t{-1}, (int64_t{1} << 24) + 1, INT64_MAX}) {
    const std::string message = message_of([&] { Client::make(machine, {.num_devices = count}); });
    EXPECT_NE(message.find("num_devices is " + std::to_string(count)), std::string::npos) << message;
  }
  EXPECT_THROW(Client::make(nullptr, {}), InvalidArgument);
  EXPECT_THROW(Client::make(machine, {.bytes_limit = -5}), InvalidArgument);
}

TEST(Client, RefusesDevicesOutOfRange) {
  const auto client = Client::make(Machine::from_synthetic("pu:2"), {.num_devices = 4});
  EXPECT_THROW(client->device(DeviceId(4)), IndexOutOfRange);
  EXPECT_THROW(client->device(DeviceId(-1)), IndexOutOfRange);
  const std::string message = message_of([&] { client->device(DeviceId(4)); });
  EXPECT_NE(message.find("4 cpu devices, ids 0 to 3"), std::string::npos) << message;
}

TEST(Client, StoresThousandsOfDevicesCompactly) {
  static_assert(sizeof(Device) < 200);
  const auto client =
      Client::make(Machine::from_synthetic("numa:4 core:4 pu:1"), {.num_devices = 65536, .compile_only = true});
  EXPECT_EQ(client->device_count(), 65536);
  EXPECT_EQ(client->device(DeviceId(65535))->arena_index(), ArenaIndex(3));
  EXPECT_EQ(client->device(DeviceId(16384))->arena_index(), ArenaIndex(1));
  EXPECT_TRUE(client->is_compile_only());
  EXPECT_TRUE(client->device(DeviceId(7))->is_compile_only());
}

TEST(Client, GivesTheWorkerPoolALanePerDomain) {
  const auto client = Client::make(Machine::from_synthetic("numa:16 pu:1"), {});
  WorkerPool& pool = WorkerPool::process();
  EXPECT_EQ(pool.lanes(), static_cast<int>(Machine::live()->cpu_domains().size()));
  EXPECT_LE(pool.max_workers(), std::max(Machine::live()->usable_cpus(), pool.lanes()));
}

TEST(Client, DividesTheUsableMemoryOverLiveDevices) {
  const auto client = Client::make(Machine::live(), {});
  int64_t sum = 0;
  for (int64_t i = 0; i < client->device_count(); ++i) sum += client->device(DeviceId(i))->memory_bytes();
  EXPECT_GT(sum, 0);
  EXPECT_LE(sum, Machine::live()->usable_memory_bytes());
}

TEST(MemoryKind, ConvertsNamesInBothDirections) {
  for (const std::string_view name : {"device", "pinned_host", "unpinned_host"}) {
    EXPECT_EQ(to_string(memory_kind_from_name(name, "device_put")), name);
  }
  const std::string message = message_of([] { memory_kind_from_name("hbm", "device_put"); });
  EXPECT_NE(message.find("device_put: memory_kind \"hbm\""), std::string::npos) << message;
  EXPECT_NE(message.find("pinned_host"), std::string::npos) << message;
}

class DeviceStatsTest : public testing::Test {
 protected:
  ClientRef client_ = Client::make(Machine::from_synthetic("numa:1(memory=1GB) pu:2"), {});
  Device& device_ = *client_->device(DeviceId(0));
};

TEST_F(DeviceStatsTest, CountsChargesWithPeakAndLargest) {
  EXPECT_TRUE(device_.try_charge(100));
  EXPECT_TRUE(device_.try_charge(50));
  device_.discharge(100);
  EXPECT_TRUE(device_.try_charge(20));
  device_.add_reserved(64);
  const DeviceMemoryStats stats = device_.memory_stats();
  EXPECT_EQ(stats.bytes_in_use, 70);
  EXPECT_EQ(stats.peak_bytes_in_use, 150);
  EXPECT_EQ(stats.largest_alloc_size, 100);
  EXPECT_EQ(stats.num_allocs, 3);
  EXPECT_EQ(stats.bytes_reserved, 64);
  EXPECT_EQ(stats.bytes_limit, 1'000'000'000);
}

TEST_F(DeviceStatsTest, EnforcesALimitToTheByte) {
  EXPECT_EQ(device_.bytes_limit(), std::nullopt);
  device_.set_bytes_limit(100);
  EXPECT_EQ(device_.bytes_limit(), 100);
  EXPECT_EQ(device_.memory_stats().bytes_limit, 100);
  EXPECT_TRUE(device_.try_charge(60));
  EXPECT_FALSE(device_.try_charge(41));
  EXPECT_EQ(device_.memory_stats().bytes_in_use, 60);
  EXPECT_EQ(device_.memory_stats().num_allocs, 1);
  EXPECT_TRUE(device_.try_charge(40));
  EXPECT_FALSE(device_.try_charge(1));
  EXPECT_TRUE(device_.try_charge(0));
  EXPECT_FALSE(device_.try_charge(INT64_MAX));
  device_.set_bytes_limit(10);  // below what is in use
  EXPECT_FALSE(device_.try_charge(0));
  device_.discharge(100);
  EXPECT_TRUE(device_.try_charge(10));
  device_.set_bytes_limit(std::nullopt);
  EXPECT_TRUE(device_.try_charge(1000));
}

TEST_F(DeviceStatsTest, SetsTheLimitOfEachDeviceFromOptions) {
  const auto client = Client::make(Machine::from_synthetic("pu:2"), {.num_devices = 2, .bytes_limit = 4096});
  EXPECT_EQ(client->device(DeviceId(0))->bytes_limit(), 4096);
  EXPECT_EQ(client->device(DeviceId(1))->bytes_limit(), 4096);
}

TEST(Client, IsOpenUntilItIsClosed) {
  const auto client = Client::make(Machine::from_synthetic("pu:1"), {});
  EXPECT_FALSE(client->is_closed());
  client->close();
  client->close();
  EXPECT_TRUE(client->is_closed());
}

TEST(PlatformVersion, NamesLibraryCompilerAndHwloc) {
  const std::string text = platform_version();
  EXPECT_TRUE(text.starts_with("artifex_devices 0.")) << text;
  EXPECT_NE(text.find(fmt::format(", hwloc {}, fmt ", hwloc_version())), std::string::npos) << text;
}

TEST_F(DeviceStatsTest, EnforcesTheLimitAcrossThreads) {
  device_.set_bytes_limit(1000);
  std::atomic<int64_t> most{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 5000; ++i) {
        if (!device_.try_charge(300)) continue;
        const int64_t seen = device_.memory_stats().bytes_in_use;
        int64_t before = most.load();
        while (before < seen && !most.compare_exchange_weak(before, seen)) {
        }
        device_.discharge(300);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(most.load(), 900);
  EXPECT_EQ(device_.memory_stats().bytes_in_use, 0);
  EXPECT_LE(device_.memory_stats().peak_bytes_in_use, 900);
}

TEST(Client, FindsItsDevicesByNumberInTheProcess) {
  const auto machine = Machine::from_synthetic("pack:2 [numa] core:2 pu:1");
  ClientOptions options;
  options.processes = {Client::describe(*machine, 2), Client::describe(*machine, 3)};
  options.process_index = ProcessIndex(1);
  options.num_devices = 3;
  const ClientRef client = Client::make(machine, options);
  EXPECT_EQ(client->local_device(2), client->device(DeviceId(4)));
  EXPECT_THROW(client->local_device(3), Unavailable);
  EXPECT_THROW(client->local_device(-1), Unavailable);
  client->check_process(ProcessIndex(1), "local_devices");
  for (const int wrong : {-1, 2})
    EXPECT_THROW(client->check_process(ProcessIndex(wrong), "local_devices"), InvalidArgument);
}

}  // namespace
}  // namespace artifex_devices
