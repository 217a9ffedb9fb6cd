// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/device/executor.h"

#include <gtest/gtest.h>

#include <vector>

#include "artifex_devices/base/config.h"
#include "artifex_devices/device/copy_batch.h"

namespace artifex_devices {
namespace {

TEST(WorkerPoolExecutor, LeavesLongRunsInCachesToTheCallingThread) {
  const int64_t limit = config().parallel_copy_bytes.load();
  const Executor& executor = host_executor();
  EXPECT_TRUE(executor.is_inline(limit - 1));
  EXPECT_FALSE(executor.is_inline(limit));
  EXPECT_TRUE(executor.is_inline(4 * limit, true));  // 2 MiB, with any number of workers
  EXPECT_EQ(executor.is_inline(8 * limit, true), WorkerPool::process().max_workers() <= 2);
  EXPECT_FALSE(executor.is_inline(8 * limit + 2, true));
}

TEST(WorkerPoolExecutor, RunsLongRunsInCachesWithoutWorkers) {
  const int64_t bytes = 4 * config().parallel_copy_bytes.load();
  std::vector<std::byte> from(static_cast<size_t>(bytes), std::byte{7}), to(from.size());
  WorkerPool::process().shutdown();
  CopyBatch batch;
  batch.add(StridedCopy(to.data(), {1}, from.data(), {1}, {bytes}, 1), kAnyLane);
  host_executor().run(batch);
  EXPECT_EQ(WorkerPool::process().running_workers(), 0);
  EXPECT_EQ(to, from);
}

TEST(CopyBatch, HasLongRunsUnlessACopyConsistsOfShortOnes) {
  constexpr int64_t kRun = CopyBatch::kLongRun;
  std::vector<std::byte> from(4 * kRun), to(4 * kRun);
  CopyBatch batch;
  const auto add = [&](int64_t run) {
    batch.add(StridedCopy(to.data(), {run, 1}, from.data(), {2 * kRun, 1}, {2, run}, 1), kAnyLane);
  };
  add(kRun);
  EXPECT_TRUE(batch.has_long_runs());
  add(kRun - 1);
  EXPECT_FALSE(batch.has_long_runs());
}

}  // namespace
}  // namespace artifex_devices
