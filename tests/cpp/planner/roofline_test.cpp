// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/advice/roofline.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "artifex_devices/base/error.h"

namespace artifex_devices::planner {
namespace {

const Roofline kV5e = make_roofline(1.97e14, 8.19e11);

TEST(Roofline, EquatesRidgePointAndCriticalBatchOf16BitWeights) {
  EXPECT_DOUBLE_EQ(kV5e.ridge_point(), 1.97e14 / 8.19e11);
  EXPECT_DOUBLE_EQ(kV5e.critical_batch(2.0), kV5e.ridge_point());
  EXPECT_DOUBLE_EQ(kV5e.critical_batch(1.0), kV5e.ridge_point() / 2);  // int8 weights, bfloat16 products
}

// I D F / (D F - I (D + F)) for I = 240.5 and 16 bits.
TEST(Roofline, CountsActivationsInTheExactCriticalBatch) {
  const Roofline line = make_roofline(240.5, 1.0);
  EXPECT_NEAR(line.critical_batch(LayerSizes{4096, 4096}).value(), 272.5, 0.1);
  EXPECT_NEAR(line.critical_batch(LayerSizes{8192, 8192}).value(), 255.5, 0.1);
  EXPECT_NEAR(line.critical_batch(LayerSizes{8192, 28672}).value(), 249.9, 0.1);
}

TEST(Roofline, BalancesBothTimesAtTheExactCriticalBatch) {
  const LayerSizes layer{3000, 5000, 4, 1, 2};
  const double batch = kV5e.critical_batch(layer).value();
  const double math = 2 * batch * 3000 * 5000 / kV5e.peak_flops;
  const double memory = (4 * batch * 3000 + 1.0 * 3000 * 5000 + 2 * batch * 5000) / kV5e.memory_bandwidth;
  EXPECT_NEAR(math / memory, 1.0, 1e-12);
}

TEST(Roofline, HasNoCriticalBatchForSmallLayers) {
  const Roofline line = make_roofline(100.0, 1.0);
  EXPECT_EQ(line.critical_batch(LayerSizes{200, 200}), std::nullopt);  // D F = I (D + F)
  EXPECT_TRUE(line.critical_batch(LayerSizes{201, 201}).has_value());
}

TEST(Roofline, RefusesInvalidNumbers) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW(make_roofline(0, 1), InvalidArgument);
  EXPECT_THROW(make_roofline(1, nan), InvalidArgument);
  EXPECT_THROW(make_roofline(INFINITY, 1), InvalidArgument);
  EXPECT_THROW(kV5e.critical_batch(0.0), InvalidArgument);
  EXPECT_THROW(kV5e.critical_batch(LayerSizes{0, 5}), InvalidArgument);
  EXPECT_THROW(kV5e.critical_batch(LayerSizes{5, 5, 2, nan, 2}), InvalidArgument);
}

}  // namespace
}  // namespace artifex_devices::planner
