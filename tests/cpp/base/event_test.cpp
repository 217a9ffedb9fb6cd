// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/base/event.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <latch>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "artifex_devices/base/error.h"
#include "artifex_devices/base/interrupt.h"
#include "forked_child.h"

namespace artifex_devices {
namespace {

std::string text(const std::exception_ptr& error) {
  if (!error) return "no error";
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& caught) {
    return caught.what();
  }
}

std::exception_ptr out_of_memory(const char* message) { return std::make_exception_ptr(OutOfMemory(message)); }

TEST(Event, IsSetOnce) {
  Event event;
  EXPECT_FALSE(event.is_set());
  EXPECT_EQ(event.error(), nullptr);
  event.set();
  EXPECT_TRUE(event.is_set());
  event.wait();
  event.set_error(out_of_memory("too late"));
  EXPECT_EQ(event.error(), nullptr);
  event.wait();
}

TEST(Event, RethrowsTheErrorInEveryWait) {
  Event event;
  event.set_error(out_of_memory("no room"));
  EXPECT_TRUE(event.is_set());
  EXPECT_EQ(text(event.error()), "no room");
  EXPECT_THROW(event.wait(), OutOfMemory);
  EXPECT_THROW(event.wait(), OutOfMemory);
  event.set_error(out_of_memory("second"));
  event.set();
  EXPECT_EQ(text(event.error()), "no room");
}

TEST(Event, RunsContinuationsInOrderWithTheError) {
  Event event;
  std::string calls;
  event.then([&](std::exception_ptr error) { calls += "first " + text(error) + "; "; });
  event.then([&](std::exception_ptr error) { calls += "second " + text(error) + "; "; });
  EXPECT_EQ(calls, "");
  event.set_error(out_of_memory("no room"));
  EXPECT_EQ(calls, "first no room; second no room; ");
  event.then([&](std::exception_ptr error) { calls += "at once " + text(error); });
  EXPECT_EQ(calls, "first no room; second no room; at once no room");
}

TEST(Event, AllowsAContinuationToAddAnother) {
  Event event;
  std::string calls;
  event.then([&](std::exception_ptr) {
    calls += "outer ";
    event.then([&](std::exception_ptr) { calls += "inner"; });
  });
  event.set();
  EXPECT_EQ(calls, "outer inner");
}

TEST(Event, FreesContinuationsOfAnUnsetEventWithoutACall) {
  const auto held = std::make_shared<int>(1);
  bool called = false;
  {
    Event event;
    event.then([held, &called](std::exception_ptr) { called = true; });
    event.then([held, &called](std::exception_ptr) { called = true; });
    EXPECT_EQ(held.use_count(), 3);
  }
  EXPECT_EQ(held.use_count(), 1);
  EXPECT_FALSE(called);
}

TEST(Event, FreesContinuationsAfterTheirCall) {
  const auto held = std::make_shared<int>(1);
  Event event;
  event.then([held](std::exception_ptr) {});
  event.set();
  EXPECT_EQ(held.use_count(), 1);
}

TEST(Event, TreatsANullEventAsReady) {
  EXPECT_TRUE(is_ready(nullptr));
  wait_for(nullptr);
  const auto event = std::make_shared<Event>();
  EXPECT_FALSE(is_ready(event));
  event->set_error(out_of_memory("no room"));
  EXPECT_TRUE(is_ready(event));
  EXPECT_THROW(wait_for(event), OutOfMemory);
}

TEST(Event, WakesAllWaitersAndRunsEachContinuationOnce) {
  for (int round = 0; round < 50; ++round) {
    Event event;
    int data = 0;  // what the event says is ready
    std::atomic<int> woken{0};
    std::atomic<int> continued{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&] {
        event.then([&](std::exception_ptr) { continued += data; });
        event.wait();
        woken += data;
      });
    }
    threads.emplace_back([&] {
      data = 1;
      event.set();
    });
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(woken.load(), 8);
    ASSERT_EQ(continued.load(), 8);
  }
}

// Its memory is written over, so that any later access by the setter would show.
struct Destroyed {
  alignas(Event) std::byte memory[sizeof(Event)];
  Event* event = new (memory) Event;
  void destroy() {
    event->~Event();
    std::memset(memory, 0xff, sizeof(memory));
  }
};

TEST(Event, AllowsAContinuationToDestroyIt) {
  Destroyed place;
  std::string seen;
  place.event->then([&](std::exception_ptr) {
    EXPECT_TRUE(place.event->is_set());
    place.destroy();
  });
  place.event->then([&](std::exception_ptr error) { seen = text(error); });
  place.event->set_error(out_of_memory("no room"));
  EXPECT_EQ(seen, "no room");
}

TEST(Event, AllowsAWaiterToDestroyItOnceSet) {
  std::atomic<Event*> next{nullptr};
  std::atomic<bool> ended{false};
  std::thread setter([&] {
    while (!ended) {
      if (Event* event = next.exchange(nullptr)) {
        event->set();
      } else {
        std::this_thread::yield();
      }
    }
  });
  for (int round = 0; round < 2000; ++round) {
    Destroyed place;
    next = place.event;
    while (!place.event->is_set()) std::this_thread::yield();
    place.destroy();
  }
  ended = true;
  setter.join();
}

TEST(Event, EndsWaitsThatPollAndThenSleep) {
  for (const auto delay :
       {std::chrono::microseconds(0), std::chrono::microseconds(100), std::chrono::microseconds(3000)}) {
    Event event;
    event.expect_soon();
    EXPECT_FALSE(event.wait_for(1e-5));
    std::thread setter([&] {
      std::this_thread::sleep_for(delay);
      event.set_error(out_of_memory("late"));
    });
    EXPECT_THROW(event.wait(), OutOfMemory);
    setter.join();
  }
}

TEST(Event, AcceptsOneOfManySetters) {
  for (int round = 0; round < 50; ++round) {
    Event event;
    std::atomic<int> calls{0};
    event.then([&](std::exception_ptr) { ++calls; });
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&, i] {
        event.set_error(out_of_memory(std::to_string(i).c_str()));
        EXPECT_TRUE(event.is_set());  // for those that came second too
      });
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(calls.load(), 1);
    const std::string winner = text(event.error());
    ASSERT_TRUE(winner >= "0" && winner <= "3") << winner;
  }
}

TEST(Event, EndsAWaitOnInterrupt) {
  static std::atomic<int> asked;
  asked = 0;
  set_interrupt_hook([] { return ++asked == 3; });
  Event event;
  EXPECT_THROW(event.wait(), Interrupted);
  EXPECT_EQ(asked.load(), 3);
  set_interrupt_hook(nullptr);
  event.set();
  event.wait();
}

TEST(Event, ReturnsFromWaitForInTimeWithoutRethrowing) {
  Event event;
  EXPECT_FALSE(event.wait_for(0));
  EXPECT_FALSE(event.wait_for(0.03));
  event.set_error(std::make_exception_ptr(InvalidArgument("wrong")));
  EXPECT_TRUE(event.wait_for(0));
  EXPECT_THROW(event.wait(), InvalidArgument);
}

TEST(Event, IsUnavailableInTheChildWhenUnsetInTheParent) {
  Event event;
  bool called = false;
  event.then([&](std::exception_ptr) { called = true; });
  const std::string expected =
      "wait: the data was still being written when this process was forked, and the threads that wrote it stayed in "
      "the parent; expected a finished array, got an array that can never finish; call block_until_ready() before the "
      "fork, or make the array again in the child";
  EXPECT_EQ(in_forked_child([&]() -> std::string {
              try {
                event.wait();
              } catch (const Unavailable& error) {
                return error.what();
              }
              return "no error";
            }),
            expected);
  EXPECT_EQ(in_forked_child([&] {
              std::string said;
              event.then([&](std::exception_ptr error) { said = text(error); });
              return said;
            }),
            expected);
  event.set();
  EXPECT_TRUE(called);
}

TEST(Event, IsReadyInTheChildWhenSetInTheParent) {
  Event good;
  good.set();
  Event bad;
  bad.set_error(out_of_memory("no room"));
  EXPECT_EQ(in_forked_child([&] {
              good.wait();
              return text(bad.error());
            }),
            "no room");
}

TEST(Event, WorksInTheChild) {
  ARTIFEX_SKIP_WITHOUT_FORK();
  EXPECT_EQ(in_forked_child([&] {
              Event event;
              std::thread setter([&] { event.set(); });
              event.wait();
              setter.join();
              return std::string("set");
            }),
            "set");
}

TEST(Event, DoesNotBlockTheChildBehindWaitersOfTheParent) {
  ARTIFEX_SKIP_WITHOUT_FORK();
  auto event = std::make_shared<Event>();
  std::vector<std::thread> waiters;
  std::latch started(5);
  for (int i = 0; i < 4; ++i) {
    waiters.emplace_back([event, &started] {
      started.arrive_and_wait();
      event->wait();
    });
  }
  started.arrive_and_wait();
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(in_forked_child([&] {
                event.reset();
                Event own;
                std::thread setter([&] { own.set(); });
                own.wait();
                setter.join();
                return std::string("set");
              }),
              "set");
  }
  event->set();
  for (std::thread& waiter : waiters) waiter.join();
}

}  // namespace
}  // namespace artifex_devices
