// SPDX-License-Identifier: Apache-2.0
// What the pool does at fork, at exit, and in a process of its own.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "artifex_devices/base/error.h"
#include "artifex_devices/base/event.h"
#include "artifex_devices/base/interrupt.h"
#include "artifex_devices/base/worker_pool.h"
#include "forked_child.h"

namespace artifex_devices {
namespace {

WorkerPool& process_pool() { return WorkerPool::process(); }

/// Sums 0 .. 999 on the pool.
std::string sum_in_parallel() {
  std::atomic<int64_t> sum{0};
  process_pool().parallel_for(1000, kAnyLane, [&](int64_t i) { sum += i; });
  return std::to_string(sum.load());
}

TEST(WorkerPoolFork, StartsNoWorkersInAChildBeforeItsFirstTask) {
  ARTIFEX_SKIP_WITHOUT_FORK();
  ASSERT_EQ(sum_in_parallel(), "499500");
  const int most = process_pool().max_workers();
  EXPECT_EQ(in_forked_child([] { return std::to_string(process_pool().running_workers()); }), "0");
  EXPECT_EQ(in_forked_child([] { return std::to_string(process_pool().max_workers()); }), std::to_string(most));
  EXPECT_EQ(in_forked_child(sum_in_parallel), "499500");
  EXPECT_EQ(in_forked_child([] { return in_forked_child(sum_in_parallel); }), "499500");
  EXPECT_EQ(sum_in_parallel(), "499500");
}

TEST(WorkerPoolFork, WorksInTheChildOfABusyParent) {
  ARTIFEX_SKIP_WITHOUT_FORK();
  std::atomic<bool> stop{false};
  std::vector<std::thread> callers;
  for (int c = 0; c < 3; ++c) {
    callers.emplace_back([&] {
      while (!stop) {
        const auto event = std::make_shared<Event>();
        process_pool().submit(
            5, kAnyLane, [](int64_t) {}, [event](std::exception_ptr error) { event->set_error(error); });
        process_pool().parallel_for(20, kAnyLane, [](int64_t) {});
        event->wait();
      }
    });
  }
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(in_forked_child([] {
                std::string said = sum_in_parallel();
                process_pool().shutdown();
                return said;
              }),
              "499500");
  }
  stop = true;
  for (std::thread& caller : callers) caller.join();
}

TEST(WorkerPoolFork, DoesNotWaitForTasks) {
  ARTIFEX_SKIP_WITHOUT_FORK();
  std::latch release(1);
  const auto event = std::make_shared<Event>();
  process_pool().submit(1, kAnyLane, [&](int64_t) { release.wait(); }, [event](std::exception_ptr) { event->set(); });
  EXPECT_EQ(in_forked_child(sum_in_parallel), "499500");
  release.count_down();
  event->wait();
}

TEST(WorkerPoolFork, ReportsAForkInsideAnItemInTheChild) {
  ARTIFEX_SKIP_WITHOUT_FORK();
  std::latch both(2);
  const auto caller = std::this_thread::get_id();
  std::string said;
  const pid_t parent = getpid();
  pid_t child = 0;
  try {
    process_pool().parallel_for(2, kAnyLane, [&](int64_t) {
      both.arrive_and_wait();
      if (std::this_thread::get_id() != caller) return;
      child = fork();
      if (child == 0) alarm(30);
    });
  } catch (const Unavailable& error) {
    said = error.what();
  }
  if (getpid() != parent) {
    const bool clear = said.empty() || said.starts_with("parallel_for: the process was forked during this call");
    _exit(clear ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(said, "");
}

TEST(WorkerPoolFork, ReportsAForkInTheInterruptHookInTheChild) {
  ARTIFEX_SKIP_WITHOUT_FORK();
  static pid_t child;
  static std::atomic<bool> worker_is_at_work;
  static std::atomic<bool> forked;
  child = -1;
  worker_is_at_work = forked = false;
  set_interrupt_hook([] {
    if (!worker_is_at_work || child >= 0) return false;
    child = fork();
    if (child == 0) alarm(10);
    forked = true;
    return false;
  });
  const auto caller = std::this_thread::get_id();
  const pid_t parent = getpid();
  std::string said;
  try {
    process_pool().parallel_for(2, kAnyLane, [&](int64_t) {
      if (std::this_thread::get_id() == caller) {
        while (!worker_is_at_work) std::this_thread::yield();
        return;
      }
      worker_is_at_work = true;
      while (!forked) std::this_thread::yield();
    });
  } catch (const Unavailable& error) {
    said = error.what();
  }
  set_interrupt_hook(nullptr);
  if (getpid() != parent) _exit(said.starts_with("parallel_for: the process was forked during this call") ? 0 : 1);
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(said, "");
}

TEST(WorkerPoolFork, AllowsAChildToConfigureLanes) {
  ARTIFEX_SKIP_WITHOUT_FORK();
  ASSERT_EQ(sum_in_parallel(), "499500");
  EXPECT_EQ(in_forked_child([]() -> std::string {
              std::atomic<int> bound{0};
              if (!process_pool().configure(
                      {{.workers = 1, .bind = [&] { ++bound; }}, {.workers = 2, .bind = [&] { ++bound; }}})) {
                return "refused";
              }
              std::latch all_here(3);
              process_pool().parallel_for(3, LaneId(1), [&](int64_t) { all_here.arrive_and_wait(); });
              return std::to_string(process_pool().lanes()) + " lanes " + std::to_string(process_pool().max_workers()) +
                     " workers " + std::to_string(bound.load()) + " bound " +
                     (process_pool().configure({{}}) ? "again" : "once");
            }),
            "2 lanes 3 workers 2 bound once");
}

TEST(WorkerPoolFork, RefusesLanesWithoutWorkers) {
  EXPECT_EQ(in_forked_child([] {
              const int before = process_pool().max_workers();
              const bool taken = process_pool().configure({{.workers = 0, .bind = {}}, {.workers = -1, .bind = {}}});
              return std::string(taken || process_pool().max_workers() != before ? "taken" : "refused");
            }),
            "refused");
}

TEST(WorkerPoolFork, DefaultsToOneLaneWithAWorkerForEachAllowedCpu) {
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
  EXPECT_EQ(in_forked_child([] {
              process_pool().configure({});
              return std::to_string(process_pool().lanes()) + " lane " + std::to_string(process_pool().max_workers());
            }),
            "1 lane " + std::to_string(CPU_COUNT(&allowed)));
}

[[noreturn]] void work_without_room_for_threads() {
  const rlimit none = {0, 0};
  setrlimit(RLIMIT_AS, &none);
  bool right = sum_in_parallel() == "499500" && process_pool().running_workers() == 0;
  std::string said = "no error";
  try {
    process_pool().submit(2, kAnyLane, [](int64_t) {}, [](std::exception_ptr) {});
  } catch (const Unavailable& error) {
    said = error.what();
  }
  right = right && said ==
                       "submit: the system cannot create another thread for copying; expected at least 1, got 0; raise "
                       "the limit on threads or memory (ulimit -u, ulimit -v, the cgroup's pids.max)";
  _exit(right ? 0 : 1);
}

TEST(WorkerPoolLimits, RunCallsInlineAndReportSubmitWithoutThreads) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "sanitizers need address space of their own";
#endif
  testing::FLAGS_gtest_death_test_style = "threadsafe";  // a process without stacks of earlier threads
  EXPECT_EXIT(work_without_room_for_threads(), testing::ExitedWithCode(0), "");
}

[[noreturn]] void exit_while_workers_are_busy() {
  static std::atomic<int> running{0};
  const auto spin = [](int64_t) {
    ++running;
    for (;;) std::this_thread::yield();
  };
  process_pool().submit(process_pool().max_workers(), kAnyLane, spin, [](std::exception_ptr) {});
  while (running.load() == 0) std::this_thread::yield();
  std::exit(7);
}

TEST(WorkerPoolExit, IsCleanWhileWorkersAreBusy) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(exit_while_workers_are_busy(), testing::ExitedWithCode(7), "^$");
}

TEST(WorkerPoolExit, IsCleanWhileWorkersSleep) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        sum_in_parallel();
        std::exit(7);
      },
      testing::ExitedWithCode(7), "^$");
}

}  // namespace
}  // namespace artifex_devices
