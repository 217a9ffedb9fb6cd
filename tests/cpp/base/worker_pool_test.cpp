// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/base/worker_pool.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <future>
#include <latch>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "artifex_devices/base/error.h"
#include "artifex_devices/base/event.h"
#include "artifex_devices/base/interrupt.h"

namespace artifex_devices {
namespace {

WorkerPool& pool() { return WorkerPool::process(); }

thread_local int t_lane = -1;  // of a worker

// At load, because it must come before the first task of any test: the same four workers on every machine.
const bool g_configured =
    pool().configure({{.workers = 2, .bind = [] { t_lane = 0; }}, {.workers = 2, .bind = [] {
                                                                     t_lane = 1;
                                                                     throw std::runtime_error("no right to bind");
                                                                   }}});

class WorkerPoolTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(g_configured);
    pool().shutdown();
  }
  void TearDown() override {
    set_interrupt_hook(nullptr);
    pool().shutdown();
  }
};

/// Submits and waits for done; rethrows its error.
void submit_and_wait(int64_t count, LaneId lane, std::function<void(int64_t)> body) {
  const auto event = std::make_shared<Event>();
  pool().submit(count, lane, std::move(body), [event](std::exception_ptr error) { event->set_error(error); });
  event->wait();
}

TEST_F(WorkerPoolTest, IsConfiguredOnceBeforeTheFirstTask) {
  EXPECT_EQ(pool().lanes(), 2);
  EXPECT_EQ(pool().max_workers(), 4);
  EXPECT_EQ(pool().running_workers(), 0);
  pool().parallel_for(2, kAnyLane, [](int64_t) {});
  EXPECT_FALSE(pool().configure({{.workers = 7, .bind = {}}}));
  EXPECT_EQ(pool().max_workers(), 4);
}

TEST_F(WorkerPoolTest, RunsEachItemOnce) {
  for (const int64_t count : {0, 1, 2, 3, 4, 5, 17, 1000, 20000}) {
    for (const LaneId lane : {kAnyLane, LaneId(0), LaneId(1), LaneId(99)}) {
      std::vector<std::atomic<int>> runs(static_cast<size_t>(count));
      pool().parallel_for(count, lane, [&](int64_t i) { ++runs[static_cast<size_t>(i)]; });
      for (int64_t i = 0; i < count; ++i) ASSERT_EQ(runs[static_cast<size_t>(i)].load(), 1) << count << " " << i;
    }
  }
}

TEST_F(WorkerPoolTest, MakesWritesOfItemsVisibleAfterTheCall) {
  std::vector<int64_t> squares(5000);
  pool().parallel_for(5000, kAnyLane, [&](int64_t i) { squares[static_cast<size_t>(i)] = i * i; });
  for (int64_t i = 0; i < 5000; ++i) ASSERT_EQ(squares[static_cast<size_t>(i)], i * i);
}

TEST_F(WorkerPoolTest, StartsNoThreadForOneItem) {
  std::thread::id ran_on;
  pool().parallel_for(1, kAnyLane, [&](int64_t) { ran_on = std::this_thread::get_id(); });
  EXPECT_EQ(ran_on, std::this_thread::get_id());
  EXPECT_EQ(pool().running_workers(), 0);
}

TEST_F(WorkerPoolTest, RunsItemsInTheCallerAndWorkersConcurrently) {
  std::latch all_here(4);  // passes only if four items run at once
  std::mutex mutex;
  std::set<std::thread::id> threads;
  pool().parallel_for(4, LaneId(0), [&](int64_t) {
    all_here.arrive_and_wait();
    const std::lock_guard lock(mutex);
    threads.insert(std::this_thread::get_id());
  });
  EXPECT_EQ(threads.size(), 4u);
  EXPECT_EQ(threads.count(std::this_thread::get_id()), 1u);
  EXPECT_EQ(pool().running_workers(), 3);
}

TEST_F(WorkerPoolTest, StartsEachWorkerOnItsOwnLane) {
  for (int round = 0; round < 20; ++round) {
    if (round % 2 == 0) pool().shutdown();  // new threads, then ones that sleep
    std::mutex mutex;
    std::map<std::thread::id, std::pair<int, int>> first;  // the lane of each worker, and of its first item
    const auto work = [&](int lane) {
      return WorkerPool::Work{8, LaneId(lane), [&, lane](int64_t) {
                                std::unique_lock lock(mutex);
                                first.try_emplace(std::this_thread::get_id(), t_lane, lane);
                                while (first.size() < 4) {  // until all workers have come
                                  lock.unlock();
                                  std::this_thread::yield();
                                  lock.lock();
                                }
                              }};
    };
    const auto event = std::make_shared<Event>();
    pool().submit({work(0), work(1)}, [event](std::exception_ptr error) { event->set_error(error); });
    event->wait();
    for (const auto& [thread, lanes] : first) EXPECT_EQ(lanes.first, lanes.second) << "round " << round;
  }
}

TEST_F(WorkerPoolTest, LetsIdleWorkersHelpOtherLanes) {
  std::latch all_here(4);  // passes only if four items run at once
  submit_and_wait(4, LaneId(0), [&](int64_t) { all_here.arrive_and_wait(); });
  EXPECT_EQ(pool().running_workers(), 4);
}

TEST_F(WorkerPoolTest, RunsEachItemOnceOverSeveralLanes) {
  for (int round = 0; round < 50; ++round) {
    std::array<std::atomic<int>, 300> runs = {};
    const auto work = [&](int64_t from, int64_t count, int lane) {
      return WorkerPool::Work{count, LaneId(lane),
                              [&runs, from](int64_t i) { runs[static_cast<size_t>(from + i)].fetch_add(1); }};
    };
    const std::array all = {work(0, 100, 0), work(100, 0, 1), work(100, 150, 1), work(250, 50, -1)};
    pool().parallel_for(all);
    for (const auto& each : runs) ASSERT_EQ(each.load(), 1);
  }
}

TEST_F(WorkerPoolTest, StopsAllLanesAndRethrowsOneError) {
  for (int bad = 0; bad < 2; ++bad) {
    std::atomic<int64_t> items{0};
    const auto work = [&](int lane) {
      return WorkerPool::Work{1'000'000, LaneId(lane), [&items, bad, lane](int64_t i) {
                                items.fetch_add(1);
                                if (lane == bad && i == 10) throw std::out_of_range("item");
                              }};
    };
    const std::array all = {work(0), work(1)};
    EXPECT_THROW(pool().parallel_for(all), std::out_of_range);
    EXPECT_LT(items.load(), 2'000'000);
    std::promise<std::exception_ptr> ended;
    pool().submit({work(0), work(1)}, [&](std::exception_ptr error) { ended.set_value(error); });
    EXPECT_THROW(std::rethrow_exception(ended.get_future().get()), std::out_of_range);
  }
}

TEST_F(WorkerPoolTest, StartsNoMoreThreadsThanItsLanesAllow) {
  std::vector<std::thread> callers;
  std::atomic<int> most{0};
  for (int c = 0; c < 6; ++c) {
    callers.emplace_back([&, c] {
      for (int round = 0; round < 50; ++round) {
        pool().parallel_for(20, LaneId(c % 3 - 1), [&](int64_t) {
          const int now = pool().running_workers();
          int before = most.load();
          while (now > before && !most.compare_exchange_weak(before, now)) {
          }
        });
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_LE(most.load(), 4);
  EXPECT_GE(most.load(), 1);
}

TEST_F(WorkerPoolTest, RethrowsTheFirstErrorAndStartsNoFurtherItem) {
  std::atomic<int> started{0};
  EXPECT_THROW(pool().parallel_for(100000, kAnyLane,
                                   [&](int64_t i) {
                                     ++started;
                                     if (i == 3) throw OutOfMemory("no room");
                                     // On a busy machine the others would end all items before this one's thread runs.
                                     std::this_thread::sleep_for(std::chrono::microseconds(10));
                                   }),
               OutOfMemory);
  EXPECT_LT(started.load(), 100000);
  std::atomic<int> after{0};
  pool().parallel_for(10, kAnyLane, [&](int64_t) { ++after; });
  EXPECT_EQ(after.load(), 10);
}

TEST_F(WorkerPoolTest, RethrowsTheErrorOfASingleItem) {
  EXPECT_THROW(pool().parallel_for(1, kAnyLane, [](int64_t) { throw OutOfMemory("no room"); }), OutOfMemory);
}

struct Tracked {
  explicit Tracked(std::thread::id* where) : where_(where) {}
  Tracked(const Tracked&) = delete;
  ~Tracked() { *where_ = std::this_thread::get_id(); }
  std::thread::id* where_;
};

// What it holds may belong to the caller's thread, say Python's objects.
TEST_F(WorkerPoolTest, DestroysWorkerErrorsInTheCaller) {
  for (int i = 0; i < 200; ++i) {
    std::thread::id ended_on;
    std::latch thrown(1);
    try {
      pool().parallel_for(2, kAnyLane, [&, caller = std::this_thread::get_id()](int64_t) {
        if (std::this_thread::get_id() == caller) return thrown.wait();
        thrown.count_down();
        throw std::make_shared<Tracked>(&ended_on);
      });
      FAIL() << "no error";
    } catch (const std::shared_ptr<Tracked>&) {
      EXPECT_EQ(ended_on, std::thread::id());
    }
    EXPECT_EQ(ended_on, std::this_thread::get_id());
  }
}

TEST_F(WorkerPoolTest, FinishesStartedItemsBeforeRethrowing) {
  std::latch both(2);
  std::atomic<bool> ended{false};
  EXPECT_THROW(pool().parallel_for(2, kAnyLane,
                                   [&](int64_t i) {
                                     both.arrive_and_wait();
                                     if (i == 0) throw OutOfMemory("no room");
                                     std::this_thread::sleep_for(std::chrono::milliseconds(30));
                                     ended = true;
                                   }),
               OutOfMemory);
  EXPECT_TRUE(ended.load());
}

TEST_F(WorkerPoolTest, RunsNestedCallsInlineOnWorkers) {
  std::atomic<int> items{0};
  std::atomic<int> elsewhere{0};
  submit_and_wait(8, kAnyLane, [&](int64_t) {
    const auto here = std::this_thread::get_id();
    pool().parallel_for(50, kAnyLane, [&](int64_t) {
      ++items;
      if (std::this_thread::get_id() != here) ++elsewhere;
    });
  });
  EXPECT_EQ(items.load(), 400);
  EXPECT_EQ(elsewhere.load(), 0);
}

TEST_F(WorkerPoolTest, CompletesNestedCallsFromTheCaller) {
  std::atomic<int> items{0};
  pool().parallel_for(8, kAnyLane, [&](int64_t) { pool().parallel_for(50, kAnyLane, [&](int64_t) { ++items; }); });
  EXPECT_EQ(items.load(), 400);
}

TEST_F(WorkerPoolTest, RestartsThreadsAfterShutdown) {
  for (int round = 0; round < 5; ++round) {
    std::latch all_here(4);
    pool().parallel_for(4, kAnyLane, [&](int64_t) { all_here.arrive_and_wait(); });
    EXPECT_EQ(pool().running_workers(), 3);
    pool().shutdown();
    EXPECT_EQ(pool().running_workers(), 0);
    pool().shutdown();
  }
}

TEST_F(WorkerPoolTest, FinishesQueuedTasksAtShutdown) {
  std::atomic<int> items{0};
  std::atomic<int> jobs{0};
  for (int i = 0; i < 200; ++i) {
    pool().submit(10, LaneId(i % 2), [&](int64_t) { ++items; }, [&](std::exception_ptr) { ++jobs; });
  }
  pool().shutdown();
  EXPECT_EQ(items.load(), 2000);
  EXPECT_EQ(jobs.load(), 200);
}

TEST_F(WorkerPoolTest, ShutsDownWithALimitWhileAWorkerIsBusy) {
  std::latch begun(1);
  std::latch end(1);
  const auto event = std::make_shared<Event>();
  const auto wait = [&](int64_t) {
    begun.count_down();
    end.wait();
  };
  pool().submit(1, LaneId(0), wait, [event](std::exception_ptr) { event->set(); });
  begun.wait();
  pool().shutdown(std::chrono::milliseconds(10));
  EXPECT_FALSE(event->is_set());
  std::atomic<int> items{0};
  submit_and_wait(4, kAnyLane, [&](int64_t) { ++items; });
  EXPECT_EQ(items.load(), 4);
  end.count_down();
  event->wait();
}

TEST_F(WorkerPoolTest, AllowsConcurrentTasksAndShutdowns) {
  std::atomic<int> items{0};
  std::atomic<bool> stop{false};
  std::thread stopper([&] {
    while (!stop) pool().shutdown();
  });
  std::vector<std::thread> callers;
  for (int c = 0; c < 3; ++c) {
    callers.emplace_back([&] {
      for (int i = 0; i < 100; ++i) {
        pool().parallel_for(5, kAnyLane, [&](int64_t) { ++items; });
        submit_and_wait(5, LaneId(0), [&](int64_t) { ++items; });
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  stop = true;
  stopper.join();
  EXPECT_EQ(items.load(), 3000);
}

TEST_F(WorkerPoolTest, CallsDoneOnceAfterAllSubmittedItems) {
  for (int round = 0; round < 200; ++round) {
    std::atomic<int> items{0};
    int seen = -1;
    const auto event = std::make_shared<Event>();
    pool().submit(
        7, kAnyLane, [&](int64_t) { ++items; },
        [&, event](std::exception_ptr error) {
          seen = items.load();
          event->set_error(error);
        });
    event->wait();
    ASSERT_EQ(seen, 7);
  }
}

TEST_F(WorkerPoolTest, PassesTheErrorOfSubmitToDone) {
  EXPECT_THROW(submit_and_wait(20, kAnyLane,
                               [](int64_t i) {
                                 if (i == 5) throw OutOfMemory("no room");
                               }),
               OutOfMemory);
}

TEST_F(WorkerPoolTest, RunsSubmittedItemsOnWorkersOnly) {
  std::atomic<bool> here{false};
  const auto caller = std::this_thread::get_id();
  submit_and_wait(1, LaneId(0), [&](int64_t) { here = std::this_thread::get_id() == caller; });
  EXPECT_FALSE(here.load());
}

TEST_F(WorkerPoolTest, CompletesAnEmptySubmitAtOnce) {
  bool called = false;
  pool().submit(0, LaneId(0), [](int64_t) {}, [&](std::exception_ptr error) { called = error == nullptr; });
  EXPECT_TRUE(called);
  EXPECT_EQ(pool().running_workers(), 0);
}

TEST_F(WorkerPoolTest, FreesTheSubmittedBodyBeforeDone) {
  auto held = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = held;
  bool gone = false;
  const auto event = std::make_shared<Event>();
  pool().submit(
      3, LaneId(0), [held = std::move(held)](int64_t) {},
      [&gone, watch, event](std::exception_ptr) {
        gone = watch.expired();
        event->set();
      });
  event->wait();
  EXPECT_TRUE(gone);
}

TEST_F(WorkerPoolTest, AllowsSubmitFromAWorkerAndFromDone) {
  const auto event = std::make_shared<Event>();
  std::atomic<int> items{0};
  pool().submit(
      2, LaneId(0), [&](int64_t) { ++items; },
      [&, event](std::exception_ptr) {
        pool().submit(3, LaneId(1), [&](int64_t) { ++items; }, [event](std::exception_ptr) { event->set(); });
      });
  event->wait();
  EXPECT_EQ(items.load(), 5);
}

TEST_F(WorkerPoolTest, DropsErrorsOfDone) {
  pool().submit(
      2, LaneId(0), [](int64_t) {}, [](std::exception_ptr) { throw std::runtime_error("against the promise"); });
  pool().shutdown();
  std::atomic<int> items{0};
  submit_and_wait(4, kAnyLane, [&](int64_t) { ++items; });
  EXPECT_EQ(items.load(), 4);
}

TEST_F(WorkerPoolTest, EndsTheCallBetweenItemsOnInterrupt) {
  static std::atomic<int> asked;
  asked = 0;
  set_interrupt_hook([] { return ++asked > 5; });
  std::atomic<int64_t> items{0};
  EXPECT_THROW(pool().parallel_for(int64_t{1} << 50, kAnyLane, [&](int64_t) { ++items; }), Interrupted);
  set_interrupt_hook(nullptr);
  EXPECT_GE(items.load(), 1);
}

TEST_F(WorkerPoolTest, EndsTheWaitForWorkersOnInterrupt) {
  static std::atomic<bool> asked;
  static std::atomic<bool> callers_items_ended;
  asked = callers_items_ended = false;
  set_interrupt_hook([] {
    if (!callers_items_ended) return false;
    asked = true;
    return true;
  });
  const auto caller = std::this_thread::get_id();
  std::latch both(2);
  std::atomic<bool> worker_ended{false};
  EXPECT_THROW(pool().parallel_for(2, kAnyLane,
                                   [&](int64_t) {
                                     both.arrive_and_wait();
                                     if (std::this_thread::get_id() == caller) {
                                       callers_items_ended = true;
                                       return;
                                     }
                                     while (!asked) std::this_thread::yield();
                                     worker_ended = true;
                                   }),
               Interrupted);
  EXPECT_TRUE(worker_ended.load());
}

TEST_F(WorkerPoolTest, ThrowsTheInterruptThatComesAfterTheErrorOfAnItem) {
  static std::atomic<bool> failed;
  static std::atomic<bool> asked;
  set_interrupt_hook([] {
    if (!failed) return false;
    asked = true;
    return true;
  });
  const auto caller = std::this_thread::get_id();
  const auto body = [&](int64_t) {
    if (std::this_thread::get_id() != caller) {
      while (!asked) std::this_thread::yield();  // the caller, which has failed, waits for this item
      return;
    }
    failed = true;
    throw std::runtime_error("of an item");
  };
  for (int round = 0; round < 20; ++round) {
    failed = asked = false;
    EXPECT_THROW(pool().parallel_for(2, kAnyLane, body), Interrupted);
    failed = asked = false;
    const std::vector<WorkerPool::Work> work{{.count = 2, .lane = LaneId(0), .body = body},
                                             {.count = 2, .lane = LaneId(1), .body = body}};
    EXPECT_THROW(pool().parallel_for(work), Interrupted);
  }
}

TEST_F(WorkerPoolTest, NeverCallsTheInterruptHookOnAWorker) {
  static std::thread::id caller;
  static std::atomic<int> elsewhere;
  caller = std::this_thread::get_id();
  elsewhere = 0;
  set_interrupt_hook([] {
    if (std::this_thread::get_id() != caller) ++elsewhere;
    return false;
  });
  pool().parallel_for(1000, kAnyLane, [](int64_t) { pool().parallel_for(3, kAnyLane, [](int64_t) {}); });
  EXPECT_EQ(elsewhere.load(), 0);
}

TEST_F(WorkerPoolTest, NamesWorkersAndBlocksSignals) {
  std::string name;
  sigset_t blocked;
  submit_and_wait(1, LaneId(0), [&](int64_t) {
    char text[16] = {};
    pthread_getname_np(pthread_self(), text, sizeof(text));
    name = text;
    pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  });
  EXPECT_EQ(name, "artifex-0");
  EXPECT_EQ(sigismember(&blocked, SIGINT), 1);
  EXPECT_EQ(sigismember(&blocked, SIGTERM), 1);
  EXPECT_EQ(sigismember(&blocked, SIGSEGV), 0);
  sigset_t here;
  pthread_sigmask(SIG_BLOCK, nullptr, &here);
  EXPECT_EQ(sigismember(&here, SIGINT), 0);
}

TEST_F(WorkerPoolTest, LeavesNothingBehindAfterManyTinyJobs) {
  std::latch release(1);
  const auto event = std::make_shared<Event>();
  pool().submit(4, kAnyLane, [&](int64_t) { release.wait(); }, [event](std::exception_ptr) { event->set(); });
  std::atomic<int> items{0};
  for (int i = 0; i < 2000; ++i) pool().parallel_for(4, kAnyLane, [&](int64_t) { ++items; });
  EXPECT_EQ(items.load(), 8000);
  release.count_down();
  event->wait();
}

}  // namespace
}  // namespace artifex_devices
