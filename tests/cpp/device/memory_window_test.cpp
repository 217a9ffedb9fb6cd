// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/device/memory_window.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace artifex_devices {
namespace {

class MemoryWindows : public testing::Test {
 protected:
  std::shared_ptr<Client> client_ = Client::make(Machine::live(), {.num_devices = 2});
  Device& device_ = *client_->device(DeviceId(0));
};

TEST_F(MemoryWindows, RecordChangesWhileOpen) {
  ASSERT_TRUE(device_.try_charge(100));
  device_.discharge(60);
  MemoryWindow window(client_);
  ASSERT_TRUE(device_.try_charge(30));
  device_.discharge(50);
  ASSERT_TRUE(device_.try_charge(5));
  window.close();
  ASSERT_TRUE(device_.try_charge(1000));
  const MemoryUse use = window.use()[DeviceId(0)];
  EXPECT_EQ(use.at_start, 40);
  EXPECT_EQ(use.peak, 70);
  EXPECT_EQ(use.in_use, 25);
  EXPECT_EQ(use.allocated, 35);
  EXPECT_EQ(use.freed, 50);
  EXPECT_EQ(window.use()[DeviceId(1)].peak, 0);
  device_.discharge(1025);
}

TEST_F(MemoryWindows, NestAndOverlap) {
  MemoryWindow outer(client_);
  ASSERT_TRUE(device_.try_charge(9));
  device_.discharge(9);
  MemoryWindow inner(client_);
  ASSERT_TRUE(device_.try_charge(4));
  EXPECT_EQ(outer.use()[DeviceId(0)].peak, 9);
  outer.close();
  ASSERT_TRUE(device_.try_charge(20));
  device_.discharge(24);
  inner.close();
  EXPECT_EQ(outer.use()[DeviceId(0)].peak, 9);
  EXPECT_EQ(outer.use()[DeviceId(0)].in_use, 4);
  EXPECT_EQ(inner.use()[DeviceId(0)].peak, 24);
  EXPECT_EQ(inner.use()[DeviceId(0)].freed, 24);
}

TEST_F(MemoryWindows, WatchOneClient) {
  const std::shared_ptr<Client> other = Client::make(Machine::live(), {.num_devices = 1});
  MemoryWindow window(client_);
  {
    MemoryWindow of_other(other);
    ASSERT_TRUE(other->device(DeviceId(0))->try_charge(7));
    other->device(DeviceId(0))->discharge(7);
    EXPECT_EQ(of_other.use()[DeviceId(0)].peak, 7);
  }
  EXPECT_EQ(window.use()[DeviceId(0)].peak, 0);
}

TEST_F(MemoryWindows, IgnoreRefusedCharges) {
  device_.set_bytes_limit(10);
  MemoryWindow window(client_);
  EXPECT_FALSE(device_.try_charge(11));
  EXPECT_EQ(window.use()[DeviceId(0)].peak, 0);
  EXPECT_EQ(window.use()[DeviceId(0)].allocated, 0);
}

TEST_F(MemoryWindows, CountConcurrentChargesCompletely) {
  constexpr int64_t kRounds = 5000;
  MemoryWindow outer(client_);
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop.load()) {
      MemoryWindow inner(client_);
      const MemoryUse use = inner.use()[DeviceId(0)];
      EXPECT_GE(use.peak, use.at_start);
      EXPECT_LE(use.peak, 40);
    }
  });
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int64_t i = 0; i < kRounds; ++i) {
        ASSERT_TRUE(device_.try_charge(10));
        device_.discharge(10);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  stop.store(true);
  other.join();
  const MemoryUse use = outer.use()[DeviceId(0)];
  EXPECT_EQ(use.allocated, 4 * kRounds * 10);
  EXPECT_EQ(use.freed, 4 * kRounds * 10);
  EXPECT_EQ(use.in_use, 0);
  EXPECT_GE(use.peak, 10);
  EXPECT_LE(use.peak, 40);
}

TEST_F(MemoryWindows, CountPhysicalMemoryOnce) {
  const MemoryWindow window(client_);
  const int64_t before = window.physical_bytes();
  const BlockRef block = device_.arena().allocate(1 << 20);
  EXPECT_EQ(window.physical_bytes() - before, 1 << 20);
  const MemoryWindow planned(Client::make(Machine::live(), {.num_devices = 2, .compile_only = true}));
  EXPECT_EQ(planned.physical_bytes(), 0);
}

}  // namespace
}  // namespace artifex_devices
