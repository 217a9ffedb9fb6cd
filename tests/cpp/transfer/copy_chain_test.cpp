// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/transfer/copy_chain.h"

#include <gtest/gtest.h>

#include <cstring>
#include <stdexcept>
#include <vector>

#include "artifex_devices/device/executor.h"
#include "host_arrays.h"

namespace artifex_devices {
namespace {

using test::pick;
using test::Random;

TEST(CopyChain, CopiesBoxesAtAnyDistance) {
  Random random(1);
  for (int round = 0; round < 300; ++round) {
    const int64_t rows = pick(random, 1, 3);
    const int64_t columns = pick(random, 1, 9);
    const int64_t boxes = pick(random, 1, 12);
    const int64_t row_stride = columns + pick(random, 0, 3);
    const test::ByteArray from = test::random_bytes(random, 4096);
    test::ByteArray to(4096);
    test::ByteArray expected(4096);
    CopyChain chain;
    for (int form = 0; form < 2; ++form) {
      chain.begin({{rows, columns}, {columns, 1}, {row_stride, 1}, 1});
      const bool is_regular = pick(random, 0, 1) == 1;
      for (int64_t i = 0; i < boxes; ++i) {
        const int64_t at = (form * boxes + i) * rows * columns;
        const int64_t source = is_regular ? i * row_stride : pick(random, 0, 4000);
        if (source + rows * row_stride > 4096) continue;
        chain.add(to.data() + at, from.data() + source);
        for (int64_t r = 0; r < rows; ++r) {
          std::memcpy(expected.data() + at + r * columns, from.data() + source + r * row_stride,
                      static_cast<size_t>(columns));
        }
      }
    }
    chain.flush();
    ASSERT_EQ(to, expected) << round;
  }
}

TEST(CopyBatch, RunsEachUnitOnceAndCountsItsBytes) {
  std::vector<std::atomic<int>> runs(1000);
  CopyBatch batch;
  batch.add(CopyBatch::Bulk{kAnyLane, 1000, int64_t{64} << 20, [&](int64_t first, int64_t last) {
                              for (int64_t i = first; i < last; ++i) ++runs[static_cast<size_t>(i)];
                            }});
  EXPECT_EQ(batch.bytes(), int64_t{64} << 20);
  host_executor().run(batch);
  for (const auto& each : runs) ASSERT_EQ(each, 1);
}

TEST(CopyBatch, ReportsTheErrorOfAUnit) {
  const auto bulk = [] {
    return CopyBatch::Bulk{kAnyLane, 100, int64_t{64} << 20, [](int64_t first, int64_t last) {
                             if (first <= 50 && 50 < last) throw std::runtime_error("no memory for 50");
                           }};
  };
  CopyBatch now;
  now.add(bulk());
  EXPECT_THROW(host_executor().run(now), std::runtime_error);
  auto later = std::make_shared<CopyBatch>();
  later->add(bulk());
  const EventRef done = host_executor().submit(later, nullptr);
  EXPECT_THROW(done->wait(), std::runtime_error);
}

TEST(CopyBatchLanes, DivideTheBytesOfATransferOverItsLanes) {
  EXPECT_EQ(bytes_of_one_lane(1200, std::vector(3, LaneId(0))), 1200);
  EXPECT_EQ(bytes_of_one_lane(1200, {LaneId(2), LaneId(0), LaneId(1), LaneId(2), LaneId(0)}), 400);
  EXPECT_EQ(bytes_of_one_lane(1200, {}), 1200);
}

}  // namespace
}  // namespace artifex_devices
