// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/array/host_value_cache.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace artifex_devices {
namespace {

using Value = std::shared_ptr<const HostView>;

Value make_value() { return std::make_shared<const HostView>(); }

TEST(Gate, ReportsOnceThatItIsClosedAndEmpty) {
  Gate gate;
  ASSERT_TRUE(gate.enter());
  EXPECT_FALSE(gate.leave());
  ASSERT_TRUE(gate.enter());
  ASSERT_TRUE(gate.enter());
  EXPECT_FALSE(gate.close());
  EXPECT_FALSE(gate.enter());
  EXPECT_FALSE(gate.leave());
  EXPECT_FALSE(gate.close());
  EXPECT_TRUE(gate.leave());
  EXPECT_FALSE(gate.close());
}

TEST(HostValueCache, ReturnsTheFirstValueUntilItIsClosed) {
  HostValueCache cache;
  EXPECT_EQ(cache.get(), nullptr);
  Value first = make_value();
  const std::weak_ptr<const HostView> watch = first;
  EXPECT_EQ(cache.put(first), first);
  EXPECT_EQ(cache.put(make_value()), first);
  EXPECT_EQ(cache.get(), first);
  first.reset();
  EXPECT_FALSE(watch.expired());
  cache.close();
  EXPECT_TRUE(watch.expired());
  const Value late = make_value();
  EXPECT_EQ(cache.put(late), late);
  EXPECT_EQ(cache.get(), nullptr);
}

TEST(HostValueCache, IsReadWhileAnotherThreadClosesIt) {
  for (int round = 0; round < 200; ++round) {
    HostValueCache cache;
    const Value value = cache.put(make_value());
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&] {
        while (const Value found = cache.get()) wrong += found != value;
      });
    }
    cache.close();
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(value.use_count(), 1);
  }
}

}  // namespace
}  // namespace artifex_devices
