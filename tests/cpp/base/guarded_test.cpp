// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/base/guarded.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "artifex_devices/base/mutex.h"

namespace artifex_devices {
namespace {

TEST(Guarded, IsChangedByOneThreadAtATime) {
  Guarded<std::vector<int>, Mutex<"numbers of a test">> numbers(2, 7);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) numbers.lock()->push_back(i);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(numbers.lock()->size(), 4002u);
  EXPECT_EQ((*numbers.lock())[1], 7);
  EXPECT_EQ(numbers.unlocked().front(), 7);
}

}  // namespace
}  // namespace artifex_devices
