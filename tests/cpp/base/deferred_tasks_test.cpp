// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/base/deferred_tasks.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace artifex_devices {
namespace {

EventRef event_of(const DeferredTasks& tasks) {
  auto event = std::make_shared<Event>();
  event->set_world(tasks.world());
  return event;
}

std::string order_of(uint64_t seed) {
  DeferredTasks tasks(seed);
  std::string order;
  for (const char name : {'a', 'b', 'c', 'd', 'e', 'f'}) {
    tasks.add([&order, name] { order += name; });
  }
  while (tasks.run_one()) {
  }
  return order;
}

TEST(DeferredTasks, RunInAnOrderDrawnFromTheSeed) {
  EXPECT_EQ(order_of(7), order_of(7));
  EXPECT_NE(order_of(7), order_of(8));
  EXPECT_EQ(order_of(7).size(), 6U);
  EXPECT_FALSE(DeferredTasks(7).run_one());
}

TEST(DeferredTasks, RunWhenAThreadWaits) {
  DeferredTasks tasks(1);
  const EventRef done = event_of(tasks);
  bool other_ran = false;
  tasks.add([done] { done->set(); });
  tasks.add([&other_ran] { other_ran = true; });
  EXPECT_FALSE(done->is_set());
  EXPECT_FALSE(other_ran);
  done->wait();
  EXPECT_TRUE(done->is_set());
  while (tasks.run_one()) {
  }
  EXPECT_TRUE(other_ran);
}

TEST(DeferredTasks, PollingMakesProgress) {
  DeferredTasks tasks(1);
  const EventRef done = event_of(tasks);
  int ran = 0;
  for (int i = 0; i < 3; ++i) {
    tasks.add([&ran, done] {
      if (++ran == 3) done->set();
    });
  }
  EXPECT_FALSE(DeferredTasks::poll(done));
  EXPECT_EQ(ran, 1);
  EXPECT_FALSE(DeferredTasks::poll(done));
  EXPECT_TRUE(DeferredTasks::poll(done));
  EXPECT_TRUE(DeferredTasks::poll(nullptr));
}

TEST(DeferredTasks, TheOrderOfAWorldDoesNotDependOnOthers) {
  DeferredTasks tasks(7), other(7);
  std::string order;
  bool other_has_run = false;
  for (const char name : {'a', 'b', 'c', 'd', 'e', 'f'}) {
    tasks.add([&order, name] { order += name; });
    const EventRef done = event_of(other);
    other.add([done] { done->set(); });
    done->wait();
    other_has_run = done->is_set();
    EXPECT_EQ(order, "");  // a wait in one world runs nothing of the other
  }
  EXPECT_TRUE(other_has_run);
  while (tasks.run_one()) {
  }
  EXPECT_EQ(order, order_of(7));
}

TEST(DeferredTasks, AWaitRunsTasksOfOtherWorldsThatItsEventDependsOn) {
  DeferredTasks first(1), second(2);
  const EventRef source = event_of(first), target = event_of(second);
  first.add([source] { source->set(); });
  source->then([&second, target](std::exception_ptr) { second.add([target] { target->set(); }); });
  target->wait();
  EXPECT_TRUE(source->is_set());
}

TEST(DeferredTasks, AWaitForAnEventOfNoWorldRunsNone) {
  DeferredTasks tasks(1);
  bool ran = false;
  tasks.add([&ran] { ran = true; });
  EXPECT_FALSE(std::make_shared<Event>()->wait_for(0));
  EXPECT_FALSE(DeferredTasks::poll(std::make_shared<Event>()));
  EXPECT_FALSE(ran);
  EXPECT_TRUE(tasks.run_one());
}

}  // namespace
}  // namespace artifex_devices
