// SPDX-License-Identifier: Apache-2.0
// The workers and the events: every item runs once and every end is reported once, also during shutdowns.
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <stdexcept>

#include "artifex_devices/base/event.h"
#include "artifex_devices/base/worker_pool.h"
#include "stress.h"

namespace artifex_devices {
namespace {

using test::Deadline;
using test::in_threads;
using Random = std::mt19937_64;

int64_t pick_number(Random& random, int64_t least, int64_t most) {
  return least + static_cast<int64_t>(random() % static_cast<uint64_t>(most - least + 1));
}

TEST(PoolStress, RunsJobsDuringShutdown) {
  const Deadline deadline;
  WorkerPool& pool = WorkerPool::process();
  pool.configure({{.workers = 2, .bind = {}}, {.workers = 2, .bind = {}}});
  std::atomic<int64_t> begun{0};
  std::atomic<int64_t> ended{0};
  in_threads(6, deadline, [&](int thread, Random& random) {
    const int64_t items = pick_number(random, 0, 40);
    const LaneId lane(pick_number(random, -1, 1));
    const int64_t bad = pick_number(random, 0, 3) == 0 ? pick_number(random, 0, 40) : -1;
    switch (pick_number(random, 0, 5)) {
      case 0: {  // on this thread and the workers
        std::vector<int64_t> values(static_cast<size_t>(items));
        std::string said;
        try {
          pool.parallel_for(items, lane, [&](int64_t i) {
            if (i == bad) throw std::runtime_error("item " + std::to_string(i));
            values[static_cast<size_t>(i)] = i * i;
          });
        } catch (const std::runtime_error& error) {
          said = error.what();
        }
        const bool fails = bad >= 0 && bad < items;
        EXPECT_EQ(said, fails ? "item " + std::to_string(bad) : "");
        for (int64_t i = 0; i < items && !fails; ++i) EXPECT_EQ(values[static_cast<size_t>(i)], i * i);
        return;
      }
      case 1:
        if (thread == 0) pool.shutdown();
        return;
      case 2:
        EXPECT_LE(pool.running_workers(), pool.max_workers());
        EXPECT_GE(pool.lanes(), 1);  // 2 where nothing used it before
        return;
      default: {  // reported by an event, with the results of the items
        begun.fetch_add(1);
        auto values = std::make_shared<std::vector<int64_t>>(static_cast<size_t>(items));
        const auto event = std::make_shared<Event>();
        pool.submit(
            items, lane,
            [values, bad](int64_t i) {
              if (i == bad) throw std::runtime_error("bad item");
              (*values)[static_cast<size_t>(i)] = i + 1;
            },
            [&ended, event](std::exception_ptr error) {
              ended.fetch_add(1);
              error ? event->set_error(error) : event->set();
            });
        if (bad >= 0 && bad < items) {
          // Its text is not read: the sanitizer does not see libstdc++'s reference counts of exceptions.
          EXPECT_THROW(event->wait(), std::runtime_error);
          return;
        }
        event->wait();
        for (int64_t i = 0; i < items; ++i) EXPECT_EQ((*values)[static_cast<size_t>(i)], i + 1);
      }
    }
  });
  pool.shutdown();
  EXPECT_EQ(ended.load(), begun.load());
  EXPECT_EQ(pool.running_workers(), 0);
}

TEST(PoolStress, RunsContinuationsOnceInAnyOrder) {
  const Deadline deadline;
  constexpr int kThreads = 5;
  std::mutex mutex;
  std::shared_ptr<Event> shared = std::make_shared<Event>();
  std::atomic<int64_t> asked{0};
  std::atomic<int64_t> called{0};
  in_threads(kThreads, deadline, [&](int, Random& random) {
    std::shared_ptr<Event> event;
    {
      const std::lock_guard lock(mutex);
      event = shared;
    }
    switch (pick_number(random, 0, 4)) {
      case 0:
      case 1: {
        asked.fetch_add(1);
        event->then([&called](std::exception_ptr) { called.fetch_add(1); });
        return;
      }
      case 2: {  // of several, one says it; then all go on with a new one
        auto next = std::make_shared<Event>();
        pick_number(random, 0, 1) == 0 ? event->set()
                                       : event->set_error(std::make_exception_ptr(std::runtime_error("said")));
        EXPECT_TRUE(event->is_set());
        const std::exception_ptr error = event->error();
        event->set();
        EXPECT_EQ(event->error(), error);
        const std::lock_guard lock(mutex);
        if (shared == event) shared = std::move(next);
        return;
      }
      case 3: {
        if (!event->wait_for(0.001)) return;
        EXPECT_TRUE(event->is_set());
        return;
      }
      default: {  // one that another thread makes true
        const auto own = std::make_shared<Event>();
        int64_t value = 0;
        std::thread other([&] {
          value = 7;
          own->set();
        });
        own->wait();
        EXPECT_EQ(value, 7);
        other.join();
      }
    }
  });
  shared->set();
  EXPECT_EQ(called.load(), asked.load());
}

}  // namespace
}  // namespace artifex_devices
