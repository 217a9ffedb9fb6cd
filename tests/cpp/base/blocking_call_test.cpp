// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/base/blocking_call.h"

#include <gtest/gtest.h>

namespace artifex_devices {
namespace {

int g_hooked = 0;

TEST(BlockingCall, RunsItsWorkInTheHookIfThereIsOne) {
  int calls = 0;
  const auto count = [](void* argument) { ++*static_cast<int*>(argument); };
  run_blocking(count, &calls);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(g_hooked, 0);
  set_blocking_call_hook([](void (*work)(void*), void* argument) {
    ++g_hooked;
    work(argument);
  });
  run_blocking(count, &calls);
  set_blocking_call_hook(nullptr);
  run_blocking(count, &calls);
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(g_hooked, 1);
}

}  // namespace
}  // namespace artifex_devices
