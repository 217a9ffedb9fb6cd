// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/base/deferred_tasks.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace artifex_devices {
namespace {

std::string order_of(uint64_t seed) {
  DeferredTasks::seed(seed);
  std::string order;
  for (const char name : {'a', 'b', 'c', 'd', 'e', 'f'}) {
    DeferredTasks::add([&order, name] { order += name; });
  }
  while (DeferredTasks::run_one()) {
  }
  return order;
}

TEST(DeferredTasks, RunInAnOrderDrawnFromTheSeed) {
  EXPECT_EQ(order_of(7), order_of(7));
  EXPECT_NE(order_of(7), order_of(8));
  EXPECT_EQ(order_of(7).size(), 6U);
  EXPECT_FALSE(DeferredTasks::run_one());
}

TEST(DeferredTasks, RunWhenAThreadWaits) {
  DeferredTasks::seed(1);
  const auto done = std::make_shared<Event>();
  bool other_ran = false;
  DeferredTasks::add([done] { done->set(); });
  DeferredTasks::add([&other_ran] { other_ran = true; });
  EXPECT_FALSE(done->is_set());
  EXPECT_FALSE(other_ran);
  done->wait();
  EXPECT_TRUE(done->is_set());
  while (DeferredTasks::run_one()) {
  }
  EXPECT_TRUE(other_ran);
}

TEST(DeferredTasks, PollingMakesProgress) {
  DeferredTasks::seed(1);
  const auto done = std::make_shared<Event>();
  int ran = 0;
  for (int i = 0; i < 3; ++i) {
    DeferredTasks::add([&ran, done] {
      if (++ran == 3) done->set();
    });
  }
  EXPECT_FALSE(DeferredTasks::poll(done));
  EXPECT_EQ(ran, 1);
  EXPECT_FALSE(DeferredTasks::poll(done));
  EXPECT_TRUE(DeferredTasks::poll(done));
  EXPECT_TRUE(DeferredTasks::poll(nullptr));
}

}  // namespace
}  // namespace artifex_devices
