// SPDX-License-Identifier: Apache-2.0
// Each check of base/mutex.h fires, and lets right use pass. Names differ from test to test: the order that was seen
// stays with the process.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "artifex_devices/base/error.h"
#include "artifex_devices/base/event.h"
#include "artifex_devices/base/interrupt.h"
#include "artifex_devices/base/mutex.h"
#include "artifex_devices/base/worker_pool.h"
#include "message_of.h"

namespace artifex_devices {
namespace {

#ifndef ARTIFEX_CHECK_LOCKS

static_assert(std::is_same_v<Mutex<"a">, std::mutex>);
static_assert(std::is_same_v<ConditionVariable, std::condition_variable>);

#else

class LockCheck : public testing::Test {
 protected:
  void SetUp() override {
    lock_check::set_violation_hook([](const std::string& message) { throw Unavailable(message); });
  }
  void TearDown() override {
    lock_check::set_violation_hook(nullptr);
    lock_check::set_gil_hook(nullptr);
  }
};

TEST_F(LockCheck, RefusesTheReverseOrderWithoutContention) {
  Mutex<"order a"> a;
  Mutex<"order b"> b;
  {
    const std::lock_guard first(a);
    const std::lock_guard second(b);
  }
  const std::lock_guard first(b);
  EXPECT_EQ(message_of([&] { a.lock(); }),
            "lock order: this thread takes \"order a\" while it holds \"order b\"; the opposite order occurred too: "
            "\"order a\", then \"order b\"");
}

TEST_F(LockCheck, DetectsCyclesAcrossThreadsAndObjects) {
  Mutex<"ring a"> a, another_a;
  Mutex<"ring b"> b, another_b;
  Mutex<"ring c"> c;
  std::thread([&] {
    const std::lock_guard first(a);
    const std::lock_guard second(b);
  }).join();
  std::thread([&] {
    const std::lock_guard first(another_b);
    const std::lock_guard second(c);
  }).join();
  const std::lock_guard first(c);
  EXPECT_EQ(message_of([&] { another_a.lock(); }),
            "lock order: this thread takes \"ring a\" while it holds \"ring c\"; the opposite order occurred too: "
            "\"ring a\", then \"ring b\", then \"ring c\"");
}

TEST_F(LockCheck, AllowsRepetitionOfOneOrder) {
  Mutex<"fine a"> a;
  NamedLock<std::mutex, "fine b"> b;
  for (int i = 0; i < 3; ++i) {
    std::unique_lock first(a);
    const std::lock_guard second(b);
    first.unlock();  // in any order
  }
  const std::lock_guard alone(b);
}

TEST_F(LockCheck, RefusesToLockOneNameTwice) {
  Mutex<"twice"> one, other;
  const std::lock_guard lock(one);
  EXPECT_EQ(message_of([&] { one.lock(); }), "lock order: this thread takes \"twice\" again, which it holds");
  EXPECT_EQ(message_of([&] { other.lock(); }), "lock order: this thread takes a second \"twice\" while it holds one");
}

TEST_F(LockCheck, AllowsAForkToLockSeveralOfOneName) {
  Mutex<"of a fork", LockUse::kFork> fork;
  Mutex<"many", LockUse::kWaits> one, other;
  lock_check::set_gil_hook([] { return true; });
  const std::lock_guard all(fork);
  const std::lock_guard first(one);
  const std::lock_guard second(other);
}

TEST_F(LockCheck, RefusesUnlockByAnotherThread) {
  Mutex<"of one thread"> mutex;
  const std::lock_guard lock(mutex);
  std::string said;
  std::thread([&] { said = message_of([&] { mutex.unlock(); }); }).join();
  EXPECT_EQ(said, "lock order: this thread releases \"of one thread\", which it does not hold");
}

TEST_F(LockCheck, RefusesForeignCodeUnderALock) {
  Mutex<"outer"> outer;
  Mutex<"inner"> inner;
  no_lock_held("a callback");
  const std::lock_guard first(outer);
  const std::lock_guard second(inner);
  EXPECT_EQ(message_of([] { no_lock_held("a callback"); }),
            "a callback: foreign code would run under a lock; this thread holds \"outer\", then \"inner\"");
}

TEST_F(LockCheck, ChecksWhereTheBaseCallsForeignCode) {
  Mutex<"of a caller"> mutex;
  const std::lock_guard lock(mutex);
  const std::string held = ": foreign code would run under a lock; this thread holds \"of a caller\"";
  EXPECT_EQ(message_of([] { check_interrupt(); }), "check_interrupt" + held);
  EXPECT_EQ(message_of([] { WorkerPool::process().parallel_for(1, kAnyLane, [](int64_t) {}); }), "parallel_for" + held);
  EXPECT_EQ(message_of([] { WorkerPool::process().submit(1, kAnyLane, [](int64_t) {}, [](std::exception_ptr) {}); }),
            "submit" + held);
  const auto event = std::make_shared<Event>();
  event->set();
  EXPECT_EQ(message_of([&] { event->then([](std::exception_ptr) {}); }), "a continuation of an event" + held);
}

TEST_F(LockCheck, RefusesToWaitUnderAnUnrelatedLock) {
  Mutex<"of a wait"> mutex;
  Mutex<"meant for it", LockUse::kWaits> meant;
  Mutex<"not meant for it"> plain;
  ConditionVariable changed;
  const auto wait = [&] {
    std::unique_lock lock(mutex);
    changed.wait_for(lock, std::chrono::microseconds(1));
  };
  wait();
  {
    const std::lock_guard outer(meant);
    wait();
  }
  const std::lock_guard outer(plain);
  EXPECT_EQ(message_of(wait), "wait: this thread waits for others while it holds \"not meant for it\"");
}

TEST_F(LockCheck, ReleasesTheMutexDuringAWait) {
  Mutex<"waited for"> mutex;
  ConditionVariable changed;
  bool said = false;
  std::thread other([&] {
    const std::lock_guard lock(mutex);
    said = true;
    changed.notify_one();
  });
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return said; });
    EXPECT_EQ(message_of([] { no_lock_held("here"); }),
              "here: foreign code would run under a lock; this thread holds \"waited for\"");
    EXPECT_FALSE(changed.wait_for(lock, std::chrono::milliseconds(1), [] { return false; }));
    EXPECT_TRUE(changed.wait_for(lock, std::chrono::milliseconds(1), [] { return true; }));
  }
  other.join();
  no_lock_held("here");
}

TEST_F(LockCheck, RefusesToWaitWithTheGil) {
  Mutex<"of a wait in Python"> mutex;
  ConditionVariable changed;
  std::unique_lock lock(mutex);
  lock_check::set_gil_hook([] { return true; });
  EXPECT_EQ(
      message_of([&] { changed.wait_for(lock, std::chrono::microseconds(1)); }),
      "wait: this thread waits under \"of a wait in Python\" while it has the GIL; release the GIL before the wait");
}

TEST_F(LockCheck, RefusesToWaitForEventsAndWorkersWithTheGil) {
  lock_check::set_gil_hook([] { return true; });
  Event event;
  EXPECT_EQ(message_of([&] { event.wait_for(0.001); }),
            "wait: this thread waits for an event while it has the GIL; release the GIL before the wait");
  event.set();
  event.wait();  // does not wait
  std::atomic<int> items{0};
  const auto item = [&](int64_t) { ++items; };
  EXPECT_EQ(
      message_of([&] { WorkerPool::process().parallel_for(2, kAnyLane, item); }),
      "wait: this thread waits for the workers (parallel_for) while it has the GIL; release the GIL before the wait");
  EXPECT_EQ(items.load(), 0);
  WorkerPool::process().parallel_for(1, kAnyLane, item);  // runs here
  EXPECT_EQ(items.load(), 1);
  lock_check::set_gil_hook([] { return false; });
  event.wait_for(0.001);
  WorkerPool::process().parallel_for(2, kAnyLane, item);
  EXPECT_EQ(items.load(), 3);
}

std::string message_of_worker(WorkerPool& pool, void (*body)()) {
  std::string said;
  const auto ended = std::make_shared<Event>();
  pool.submit(1, kAnyLane, [&](int64_t) { said = message_of(body); }, [ended](std::exception_ptr) { ended->set(); });
  ended->wait();
  pool.shutdown();
  return said;
}

TEST_F(LockCheck, RefusesTheGilOnAWorker) {
  constexpr auto kAsk = [] { acquiring_gil("a finalizer"); };
  EXPECT_EQ(message_of_worker(WorkerPool::process(), kAsk),
            "a finalizer: a worker acquires the GIL; queue the work for another thread");
  EXPECT_EQ(message_of_worker(WorkerPool::python(),
                              [] {
                                acquiring_gil("a finalizer");
                                throw Unavailable("no violation");
                              }),
            "no violation");
  acquiring_gil("a finalizer");
  Mutex<"of a thread that asks"> mutex;
  const std::lock_guard lock(mutex);
  EXPECT_EQ(message_of(kAsk),
            "a finalizer: foreign code would run under a lock; this thread holds \"of a thread that asks\"");
}

TEST_F(LockCheck, RefusesLocksOfWaitersWithTheGil) {
  Mutex<"plain one"> plain;
  Mutex<"waiting one", LockUse::kWaits> waiting;
  lock_check::set_gil_hook([] { return true; });
  const std::lock_guard fine(plain);
  EXPECT_EQ(message_of([&] { waiting.lock(); }),
            "GIL: this thread takes \"waiting one\" while it has the GIL; the thread that holds that lock may wait for "
            "a thread that needs the GIL");
  lock_check::set_gil_hook([] { return false; });
  const std::lock_guard fine_too(waiting);
}

TEST_F(LockCheck, EndsTheProcessWithoutAHook) {
  lock_check::set_violation_hook(nullptr);
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(
      {
        Mutex<"deadly"> mutex;
        mutex.lock();
        mutex.lock();
      },
      "artifex_devices: lock order: this thread takes \"deadly\" again");
}

#endif

}  // namespace
}  // namespace artifex_devices
