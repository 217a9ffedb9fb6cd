// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/advice/derived_batch_size.h"

#include <gtest/gtest.h>

#include <string>

#include "artifex_devices/base/error.h"

namespace artifex_devices::planner {
namespace {

TEST(DerivedBatchSize, FollowsFromPeakAndBandwidth) {
  const Accelerator* h200 = find_accelerator_by_kind("NVIDIA H200");
  ASSERT_NE(h200, nullptr);
  const DerivedBatchSize sizes = derived_batch_size(*h200);  // 9.89e14 / 4.8e12 = 206.04
  EXPECT_EQ(sizes.critical_batch_size, 206);
  EXPECT_EQ(sizes.optimal_batch_size, 256);
  EXPECT_EQ(sizes.min_batch_size, 52);
  EXPECT_TRUE(
      sizes.notes.starts_with("Derived for 16-bit weights, not from the built-in table and not measured: NVIDIA H200 "
                              "SXM has 9.89e+14 bfloat16 FLOP/s and 4.8e+12 bytes/s of memory by "))
      << sizes.notes;
  EXPECT_FALSE(sizes.notes.ends_with(" by "));
}

TEST(DerivedBatchSize, TakesFloat16WhereThereIsNoBfloat16) {
  const Accelerator* v100 = find_accelerator_by_kind("Tesla V100-SXM2-16GB");
  ASSERT_NE(v100, nullptr);
  const DerivedBatchSize sizes = derived_batch_size(*v100);  // 1.25e14 / 9e11 = 138.9
  EXPECT_EQ(sizes.critical_batch_size, 139);
  EXPECT_EQ(sizes.optimal_batch_size, 192);
  EXPECT_NE(sizes.notes.find(" float16 FLOP/s"), std::string::npos);
}

TEST(DerivedBatchSize, ExistsForEveryRowOfTheCatalogue) {
  for (const Accelerator& row : accelerator_catalogue()) {
    const DerivedBatchSize sizes = derived_batch_size(row);
    EXPECT_GE(sizes.min_batch_size * 4, sizes.critical_batch_size) << row.name;
    EXPECT_GE(sizes.optimal_batch_size, sizes.critical_batch_size) << row.name;
    EXPECT_EQ(sizes.optimal_batch_size % 64, 0) << row.name;
    EXPECT_GT(sizes.critical_batch_size, 10) << row.name;
  }
}

TEST(DerivedBatchSize, RefusesARowWithoutNumbers) {
  Accelerator row;
  row.name = "X";
  EXPECT_THROW(derived_batch_size(row), InvalidArgument);
}

}  // namespace
}  // namespace artifex_devices::planner
