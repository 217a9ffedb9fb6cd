// SPDX-License-Identifier: Apache-2.0
// Threads that the system does not give, tasks that throw or take long, devices that are slow.
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <mutex>
#include <set>
#include <thread>

#include "../base/forked_child.h"
#include "../transfer/host_arrays.h"
#include "artifex_devices/base/config.h"
#include "artifex_devices/base/event.h"
#include "artifex_devices/base/interrupt.h"
#include "artifex_devices/transfer/device_get.h"
#include "artifex_devices/transfer/device_put.h"
#include "artifex_devices/transfer/reshard.h"
#include "failing.h"

namespace artifex_devices::faults {
namespace {

using namespace artifex_devices::test;
using std::chrono_literals::operator""ms;

WorkerPool& pool() { return WorkerPool::process(); }

/// Two lanes of two workers.
class Workers : public ::testing::Test {
 protected:
  Workers() {
    make_world(1, 1);  // the first one sets the lanes of this machine
    pool().configure({{.workers = 2, .bind = {}}, {.workers = 2, .bind = {}}});
  }
  ~Workers() override {
    before_each_copy(nullptr);
    pool().shutdown();
  }
};

/// 1 + 2 + ... + 100 on all lanes, in the background and with the caller's help.
std::string sums() {
  std::atomic<int64_t> sum{0};
  std::promise<std::exception_ptr> ended;
  pool().submit(
      100, LaneId(1), [&](int64_t i) { sum.fetch_add(i + 1); },
      [&](std::exception_ptr error) { ended.set_value(error); });
  EXPECT_EQ(ended.get_future().get(), nullptr);
  const int64_t first = sum.exchange(0);
  pool().parallel_for(100, LaneId(0), [&](int64_t i) { sum.fetch_add(i + 1); });
  return fmt::format("{} {}", first, sum.load());
}

TEST_F(Workers, RunTasksOnFewerThreadsOrRefuseThem) {
  EXPECT_EQ(sums(), "5050 5050");
  EXPECT_GT(fail_each("tasks without a thread", Call::kThread, sums), 0);
  EXPECT_GT(fail_each("tasks without memory", Call::kNew, sums), 0);
  pool().shutdown();
  EXPECT_EQ(pool().running_workers(), 0);
}

TEST_F(Workers, ReportMissingThreadsAndLetTheCallerWork) {
  pool().shutdown();
  const Failing failing(Call::kThread, 1, true);
  std::atomic<int64_t> sum{0};
  pool().parallel_for(10, LaneId(0), [&](int64_t i) { sum.fetch_add(i); });
  EXPECT_EQ(sum.load(), 45);
  const std::string message = error_of<Unavailable>([] { pool().submit(10, LaneId(0), [](int64_t) {}, [](auto) {}); });
  EXPECT_NE(message.find("cannot create another thread for copying; expected at least 1, got 0"), std::string::npos)
      << message;
  EXPECT_EQ(pool().running_workers(), 0);
}

TEST_F(Workers, ReleaseRefusedTasks) {
  pool().shutdown();
  for (const Call call : {Call::kThread, Call::kNew}) {
    for (int64_t n = 1; n <= 8; ++n) {
      auto alive = std::make_shared<int>(0);
      std::atomic<bool> ended{false};
      bool refused = false;
      try {
        const Failing failing(call, n, true);
        pool().submit(3, LaneId(0), [alive](int64_t) {}, [&](std::exception_ptr) { ended.store(true); });
      } catch (const Unavailable&) {
        refused = true;
      } catch (const std::bad_alloc&) {
        refused = true;
      }
      pool().shutdown();  // what was begun ends
      EXPECT_EQ(ended.load(), !refused) << n;
      EXPECT_EQ(alive.use_count(), 1) << n;
    }
  }
}

TEST_F(Workers, EndOnlyTheJobOfATaskThatThrows) {
  for (int64_t bad = 0; bad < 20; ++bad) {
    std::atomic<int64_t> good{0};
    std::promise<std::exception_ptr> failed, fine;
    pool().submit(
        20, LaneId(0),
        [&](int64_t i) {
          if (i == bad) throw std::out_of_range("item");
        },
        [&](std::exception_ptr error) { failed.set_value(error); });
    pool().submit(
        20, LaneId(0), [&](int64_t) { good.fetch_add(1); }, [&](std::exception_ptr error) { fine.set_value(error); });
    EXPECT_THROW(std::rethrow_exception(failed.get_future().get()), std::out_of_range);
    EXPECT_EQ(fine.get_future().get(), nullptr);
    EXPECT_EQ(good.load(), 20);
    EXPECT_THROW(pool().parallel_for(20, LaneId(1),
                                     [&](int64_t i) {
                                       if (i == bad) throw std::out_of_range("item");
                                     }),
                 std::out_of_range);
  }
  EXPECT_EQ(sums(), "5050 5050");
}

TEST_F(Workers, SurviveACompletionThatThrows) {
  std::atomic<int> ends{0};
  for (int i = 0; i < 10; ++i) {
    pool().submit(
        2, LaneId(0), [](int64_t) {},
        [&](std::exception_ptr) {
          ends.fetch_add(1);
          throw std::bad_alloc();
        });
  }
  EXPECT_EQ(sums(), "5050 5050");
  pool().shutdown();
  EXPECT_EQ(ends.load(), 10);
}

TEST_F(Workers, IsolateABlockedLaneAndInterruptWaitsForIt) {
  std::promise<void> gate;
  const std::shared_future<void> open = gate.get_future().share();
  Event stuck;
  pool().submit(2, LaneId(0), [open](int64_t) { open.wait(); }, [&](std::exception_ptr) { stuck.set(); });
  EXPECT_FALSE(stuck.wait_for(0.05));
  std::promise<void> ended;
  pool().submit(8, LaneId(1), [](int64_t) {}, [&](std::exception_ptr) { ended.set_value(); });
  ended.get_future().get();
  std::atomic<int64_t> sum{0};
  pool().parallel_for(8, LaneId(0), [&](int64_t i) { sum.fetch_add(i); });  // the caller, though lane 0 is taken
  EXPECT_EQ(sum.load(), 28);

  set_interrupt_hook([] { return true; });
  EXPECT_THROW(stuck.wait(), Interrupted);
  set_interrupt_hook(nullptr);
  gate.set_value();
  EXPECT_TRUE(stuck.wait_for(100));
}

TEST_F(Workers, FinishStartedTasksAtShutdown) {
  std::atomic<int64_t> done{0};
  std::atomic<bool> ended{false};
  pool().submit(
      20, kAnyLane,
      [&](int64_t) {
        std::this_thread::sleep_for(1ms);
        done.fetch_add(1);
      },
      [&](std::exception_ptr) { ended.store(true); });
  pool().shutdown();
  EXPECT_EQ(done.load(), 20);
  EXPECT_TRUE(ended.load());
  EXPECT_EQ(pool().running_workers(), 0);
  EXPECT_EQ(sums(), "5050 5050");  // and threads start again
}

/// Arrays whose copies are split over both lanes and continue after the call.
class SlowDevices : public Workers {
 protected:
  SlowDevices() {
    config().parallel_copy_bytes.store(1);
    config().async_copy_bytes.store(1);
    client_ = make_world(2, 4);
    rows_ = named(client_, {4}, {"a", ""});
    columns_ = named(client_, {4}, {"", "a"});
    Random random(2);
    value_ = dense(random, {256, 512}, DType::kFloat32);
  }

  /// Rows to columns and back, and the value that comes of it.
  ByteArray there_and_back() {
    const ArrayRef there = reshard(device_put(value_, rows_, true), columns_, {});
    const ArrayRef back = reshard(there, rows_, {.donate = true});
    const auto view = device_get_async(back);
    wait_for(view->ready);
    return values(*view);
  }

  ClientRef client_;
  ShardingRef rows_, columns_;
  HostView value_;
};

TEST_F(SlowDevices, ProduceCorrectValuesInAnyOrder) {
  const ByteArray expected = values(value_);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    std::mutex mutex;
    Random random(seed);
    before_each_copy([&](const void*) {
      int64_t turns = 0;
      {
        const std::lock_guard lock(mutex);
        turns = pick(random, 0, 3) * 100;
      }
      std::this_thread::sleep_for(std::chrono::microseconds(turns));
    });
    ASSERT_EQ(there_and_back(), expected) << "seed " << seed;
    before_each_copy(nullptr);
  }
  pool().shutdown();
  EXPECT_EQ(bytes_in_use(client_), everywhere(client_, 0));
  EXPECT_EQ(arena_bytes_in_use(client_), 0);
}

// As a signal handler of Python does it: the hook runs while the calling thread waits for the other lane.
TEST_F(SlowDevices, ReportAnErrorInTheChildOfAForkDuringACopy) {
  ARTIFEX_SKIP_WITHOUT_FORK();
  static pid_t child;
  static std::atomic<bool> others_are_at_work;
  static std::atomic<bool> forked;
  child = -1;
  others_are_at_work = forked = false;
  set_interrupt_hook([] {
    if (!others_are_at_work || child >= 0) return false;
    child = fork();
    if (child == 0) alarm(10);
    forked = true;
    return false;
  });
  const auto caller = std::this_thread::get_id();
  before_each_copy([caller](const void*) {
    if (std::this_thread::get_id() == caller) {  // which would do all of it before a worker has come
      while (!others_are_at_work) std::this_thread::yield();
      return;
    }
    others_are_at_work = true;
    while (!forked) std::this_thread::yield();
  });
  const pid_t parent = getpid();
  std::string said;
  ArrayRef copied;
  try {
    copied = device_put(value_, rows_, true);
  } catch (const Unavailable& error) {
    said = error.what();
  }
  set_interrupt_hook(nullptr);
  if (getpid() != parent) _exit(said.find("forked") != std::string::npos ? 0 : 1);
  before_each_copy(nullptr);
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0) << "signal " << WTERMSIG(status);
  EXPECT_EQ(said, "");
  EXPECT_EQ(values(*device_get(copied)), values(value_));
}

TEST_F(SlowDevices, DoNotDelayOtherDevices) {
  const ArrayRef source = device_put(value_, rows_, true);
  const ArrayRef quick = device_put(value_, SingleDeviceSharding::make(client_->device(DeviceId(0))), true);
  std::promise<void> gate;
  const std::shared_future<void> open = gate.get_future().share();
  const void* const slow = quick->storage()->buffer(BufferId(0)).host_data();  // no copy of the reshard writes there
  before_each_copy([&](const void* to) {
    if (to != slow) open.wait();
  });
  ArrayRef coming = reshard(source, columns_, {});
  EXPECT_FALSE(coming->is_ready());
  EXPECT_FALSE(coming->ready_event()->wait_for(0.05));
  EXPECT_EQ(values(*device_get(quick)), values(value_));
  source->delete_();  // its memory stays until it was read
  EXPECT_GT(arena_bytes_in_use(client_), 2 * 256 * 512 * 4);
  gate.set_value();
  EXPECT_EQ(values(*device_get(coming)), values(value_));
}

TEST_F(SlowDevices, FreeDroppedArraysAfterTheirCopies) {
  std::promise<void> gate;
  const std::shared_future<void> open = gate.get_future().share();
  {
    const ArrayRef source = device_put(value_, rows_, true);
    before_each_copy([open](const void*) { open.wait(); });
    const ArrayRef coming = reshard(source, columns_, {});
    const auto view = device_get_async(coming);
    EXPECT_FALSE(coming->is_ready());
  }
  EXPECT_EQ(bytes_in_use(client_), everywhere(client_, 0));  // nobody has the arrays any more
  EXPECT_GT(arena_bytes_in_use(client_), 0);                 // but they are written still
  gate.set_value();
  // A pool that is shut down leaves what nobody has begun.
  for (int i = 0; i < 20'000 && arena_bytes_in_use(client_) > 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  pool().shutdown();
  EXPECT_EQ(arena_bytes_in_use(client_), 0);
}

TEST_F(SlowDevices, CopyInTheCallerWithoutThreads) {
  const ByteArray expected = values(value_);
  pool().shutdown();
  {
    const Failing failing(Call::kThread, 1, true);
    EXPECT_EQ(there_and_back(), expected);
    EXPECT_GT(failing.calls(), 0);
  }
  for (int64_t n = 1; n < 6; ++n) {
    pool().shutdown();
    const Failing failing(Call::kThread, n, false);
    EXPECT_EQ(there_and_back(), expected);
  }
}

TEST_F(SlowDevices, CopyInTheCallerWhenSubmissionFails) {
  const ByteArray expected = values(value_);
  const ArrayRef source = device_put(value_, rows_, true);
  for (int64_t n = 1;; ++n) {
    int64_t calls = 0;
    ArrayRef moved;
    try {
      const Failing failing(Call::kNew, n, true);
      moved = reshard(source, columns_, {});
      calls = failing.calls();
    } catch (const std::bad_alloc&) {
    } catch (const OutOfMemory&) {
    }
    if (!moved) continue;
    try {
      ASSERT_EQ(values(*device_get(moved)), expected) << "call " << n;
    } catch (const std::bad_alloc&) {  // the copy did not start: the array reports it and has no wrong value
      EXPECT_TRUE(moved->ready_event()->error());
    }
    if (calls < n) break;
  }
}

}  // namespace
}  // namespace artifex_devices::faults
