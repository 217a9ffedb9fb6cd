// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/measure/measured_rates.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include "artifex_devices/base/error.h"
#include "artifex_devices/base/interrupt.h"
#include "artifex_devices/base/worker_pool.h"
#include "artifex_devices/device/base_client.h"

namespace artifex_devices {
namespace {

constexpr RateOptions kShort = {.seconds = 0.05, .window_seconds = 0.005};

class MeasuredRates : public ::testing::Test {
 protected:
  ClientRef client_ = base_client();  // gives the workers their lanes
  std::vector<LaneId> lanes_ = all_lanes();
};

TEST_F(MeasuredRates, FindAKnownRate) {
  // At most a unit in 2 ms, whatever the machine is busy with.
  const auto prepare = [](int, int) -> WorkStep {
    return []() -> int64_t {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      return 1;
    };
  };
  const RateSeries series = measure_rate(lanes_, prepare, {.seconds = 0.1, .window_seconds = 0.02});
  ASSERT_FALSE(series.rates.empty());
  ASSERT_EQ(series.rates.size(), series.shares.size());
  for (const double rate : series.rates) {
    EXPECT_GT(rate, 0.0);
    EXPECT_LE(rate, 501.0 * workers_of(lanes_));
  }
  for (const double share : series.shares) EXPECT_LE(share, 0.9);  // sleepers have no CPU
}

TEST_F(MeasuredRates, PrepareWorkOnEachWorker) {
  const int workers = workers_of(lanes_);
  struct Shared {
    std::atomic<int> sum{0};
    std::atomic<int> workers{0};
  };
  const auto shared = std::make_shared<Shared>();
  const auto prepare = [shared](int worker, int of) -> WorkStep {
    shared->sum += worker + 1;
    shared->workers = of;
    return [] { return int64_t{1}; };
  };
  const RateSeries series = measure_rate(lanes_, prepare, {.seconds = 0.01, .window_seconds = 0.01});
  EXPECT_EQ(shared->sum, workers * (workers + 1) / 2);
  EXPECT_EQ(shared->workers, workers);
  EXPECT_LE(series.workers, workers);
  EXPECT_GE(series.workers, 1);
}

TEST_F(MeasuredRates, MeasureProductsOfEachInstructionSet) {
  for (const Isa isa : supported_isas()) {
    for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
      const RateSeries series = measure_gemm_rate(lanes_, isa, dtype, kShort);
      ASSERT_FALSE(series.rates.empty());
      for (const double rate : series.rates) {
        EXPECT_GT(rate, 0);
        EXPECT_LT(rate, 1e15);
      }
    }
  }
  EXPECT_THROW(measure_gemm_rate(lanes_, Isa::kBaseline, DType::kInt8, kShort), TypeMismatch);
}

TEST_F(MeasuredRates, MeasureStreamsOverArraysThatFitInMemory) {
  const StreamRates rates = measure_stream_rates(lanes_, {.seconds = 0.04, .window_seconds = 0.005});
  EXPECT_EQ(rates.kernels.size(), rates.series.size());
  EXPECT_EQ(rates.kernels.size(), has_streaming_stores() ? 4U : 2U);
  EXPECT_GE(rates.array_bytes, 512 << 10);
  EXPECT_LE(rates.array_bytes, usable_memory_bytes_now() / 24);
  for (const RateSeries& series : rates.series) {
    for (const double rate : series.rates) EXPECT_LT(rate, 1e14);
  }
}

TEST_F(MeasuredRates, EndOnErrorsOfTheWork) {
  EXPECT_THROW(measure_rate(lanes_, [](int, int) -> WorkStep { throw std::bad_alloc(); }, kShort), std::bad_alloc);
  const auto failing = [](int, int) -> WorkStep { return []() -> int64_t { throw std::runtime_error("no"); }; };
  EXPECT_THROW(measure_rate(lanes_, failing, kShort), std::runtime_error);
  EXPECT_THROW(measure_rate(lanes_, failing, {.seconds = 0, .window_seconds = 1}), InvalidArgument);
  EXPECT_THROW(measure_rate({}, failing, kShort), InvalidArgument);
}

TEST_F(MeasuredRates, EndOnInterrupt) {
  static std::atomic<bool> interrupt{true};
  struct Steps {
    std::atomic<int> alive{0};
    struct Count {
      explicit Count(std::atomic<int>& alive) : alive_(alive) { ++alive_; }
      ~Count() { --alive_; }
      std::atomic<int>& alive_;
    };
  };
  const auto steps = std::make_shared<Steps>();
  set_interrupt_hook([] { return interrupt.load(); });
  EXPECT_THROW(measure_rate(lanes_,
                            [steps](int, int) -> WorkStep {
                              auto count = std::make_shared<Steps::Count>(steps->alive);
                              return [steps, count] { return int64_t{1}; };
                            },
                            {.seconds = 600, .window_seconds = 1}),
               Interrupted);
  set_interrupt_hook(nullptr);
  WorkerPool::process().shutdown();  // returns only when the workers stopped
  EXPECT_EQ(steps->alive, 0);
}

TEST_F(MeasuredRates, MeasureADeviceOnItsOwnLane) {
  EXPECT_EQ(lanes_of(*client_->device(DeviceId(0))), std::vector{LaneId(0)});
  ClientOptions options;
  options.compile_only = true;
  const ClientRef planned = Client::make(Machine::live(), options);
  EXPECT_THROW(lanes_of(*planned->device(DeviceId(0))), Unavailable);
  const ClientRef made_up = Client::make(Machine::from_synthetic("pack:64 [numa] core:1 pu:1"), {});
  EXPECT_EQ(lanes_of(*made_up->device(DeviceId(63))), lanes_.size() == 64 ? std::vector{LaneId(63)} : lanes_);
}

TEST(LastLevelCache, IsCountedOnce) {
  const std::filesystem::path root = std::filesystem::path(::testing::TempDir()) / "artifex_caches";
  const auto write = [&](int cpu, int index, const char* level, const char* size, const char* shared) {
    const auto folder = root / fmt::format("sys/devices/system/cpu/cpu{}/cache/index{}", cpu, index);
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "level") << level << "\n";
    std::ofstream(folder / "size") << size << "\n";
    std::ofstream(folder / "shared_cpu_list") << shared << "\n";
  };
  for (int cpu = 0; cpu < 4; ++cpu) {
    write(cpu, 0, "1", "32K", fmt::format("{}", cpu).c_str());
    write(cpu, 1, "3", "16384K", cpu < 2 ? "0-1" : "2-3");
  }
  EXPECT_EQ(last_level_cache_bytes({0, 1}, root.string()), 16 << 20);
  EXPECT_EQ(last_level_cache_bytes({0, 1, 2, 3}, root.string()), 32 << 20);
  EXPECT_EQ(last_level_cache_bytes({9}, root.string()), 0);
  write(5, 0, "3", "99999999999999999999K", "5");
  write(6, 0, "3", "huge", "6");
  EXPECT_EQ(last_level_cache_bytes({5, 6}, root.string()), 0);
  std::filesystem::remove_all(root);
}

}  // namespace
}  // namespace artifex_devices
