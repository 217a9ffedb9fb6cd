// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <thread>

#include "artifex_devices/base/config.h"
#include "artifex_devices/device/executor.h"

namespace artifex_devices {
namespace {

class Blocking : public testing::Test {
 protected:
  EventRef submit(int64_t bytes, const EventRef& after) {
    auto batch = std::make_shared<CopyBatch>();
    batch->add(CopyBatch::Bulk{kAnyLane, 1, bytes, [this](int64_t, int64_t) { has_run_ = true; }});
    return executor_.submit(std::move(batch), after);
  }

  std::atomic<bool> has_run_ = false;
  BlockingExecutor executor_{std::make_shared<WorkerPoolExecutor>()};
};

TEST_F(Blocking, ExecutorHasMadeCopiesOfAnySizeWhenItReturns) {
  EXPECT_EQ(submit(2 * config().async_copy_bytes, nullptr), nullptr);
  EXPECT_TRUE(has_run_);
}

TEST_F(Blocking, ExecutorWaitsForTheSource) {
  const auto source = std::make_shared<Event>();
  std::thread writer([&] {
    EXPECT_FALSE(has_run_);
    source->set();
  });
  EXPECT_EQ(submit(1, source), nullptr);
  EXPECT_TRUE(has_run_);
  writer.join();
}

TEST_F(Blocking, ExecutorCopiesNothingAfterAnErrorOfTheSource) {
  const auto source = std::make_shared<Event>();
  source->set_error(std::make_exception_ptr(std::runtime_error("lost")));
  EXPECT_THROW(submit(1, source), std::runtime_error);
  EXPECT_FALSE(has_run_);
}

}  // namespace
}  // namespace artifex_devices
