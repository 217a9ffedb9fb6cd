// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/advice/batch_size.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "artifex_devices/base/error.h"

namespace artifex_devices::planner {
namespace {

TEST(BatchSizeAdvice, MatchesTheNumbersAndNotesOfTheDocument) {
  struct Row {
    std::string name;
    int64_t min, optimal, critical;
    std::string notes;
  };
  const std::vector<Row> rows = {
      {"tpu_v5e", 64, 256, 240, "Critical batch size for reaching roofline"},
      {"tpu_v5p", 128, 512, 480, "Higher throughput, needs larger batches"},
      {"tpu_v4", 64, 256, 192, "Similar to v5e, slightly lower critical"},
      {"h100", 64, 320, 298, "Critical batch size for roofline"},
      {"a100", 32, 256, 240, "For 80GB variant"},
      {"v100", 16, 128, 96, "Memory-limited on 16GB variant"},
      {"cpu", 1, 32, 16, "Memory-bandwidth bound"},
      {"unknown", 32, 128, 64, "Unknown hardware: cautious values, measure your own"},
  };
  for (const Row& row : rows) {
    const BatchSizeAdvice& advice = batch_size_advice(hardware_type_from_name(row.name).value());
    EXPECT_EQ(advice.min_batch_size, row.min) << row.name;
    EXPECT_EQ(advice.optimal_batch_size, row.optimal) << row.name;
    EXPECT_EQ(advice.critical_batch_size, row.critical) << row.name;
    EXPECT_EQ(advice.max_memory_batch_size, std::nullopt) << row.name;
    EXPECT_EQ(advice.notes, row.notes);
  }
}

TEST(BatchSizeAdvice, ReturnsTheUnknownRowForOtherValues) {
  EXPECT_EQ(&batch_size_advice(static_cast<HardwareType>(99)), &batch_size_advice(HardwareType::kUnknown));
}

TEST(MaxMemoryBatchSize, CountsExamplesBesideTheModel) {
  EXPECT_EQ(max_memory_batch_size(1000, 100, 0), 10);
  EXPECT_EQ(max_memory_batch_size(1000, 100, 1), 9);
  EXPECT_EQ(max_memory_batch_size(1000, 100, 901), 0);
  EXPECT_EQ(max_memory_batch_size(1000, 100, 2000), 0);
  EXPECT_EQ(max_memory_batch_size(0, 1, 0), 0);
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(max_memory_batch_size(kMost, 1, 0), kMost);
  EXPECT_EQ(max_memory_batch_size(0, 1, kMost), 0);
}

TEST(MaxMemoryBatchSize, RefusesInvalidCounts) {
  EXPECT_THROW(max_memory_batch_size(-1, 1, 0), InvalidArgument);
  EXPECT_THROW(max_memory_batch_size(1, 0, 0), InvalidArgument);
  try {
    max_memory_batch_size(10, -4, -5);
    FAIL() << "accepted";
  } catch (const InvalidArgument& error) {
    const std::string text = error.what();
    for (const char* part : {"free_bytes=10", "bytes_per_example=-4", "model_state_bytes=-5"}) {
      EXPECT_NE(text.find(part), std::string::npos) << text;
    }
  }
}

TEST(ValidateBatchSize, DescribesTheRangeOfASize) {
  const auto said = [](int64_t size, bool warn) {
    return validate_batch_size(size, HardwareType::kH100, warn).message;
  };
  const std::string numbers = "(minimum 64, critical 298, optimum 320)";
  EXPECT_EQ(said(63, true), "Batch size 63 is below minimum 64 for h100: use at least 64 " + numbers);
  EXPECT_EQ(said(63, false), said(63, true));
  EXPECT_EQ(said(64, true),
            "Batch size 64 is below critical 298 for h100: it works, but does not reach the roofline " + numbers);
  EXPECT_EQ(said(297, false), "Batch size 297 is acceptable for h100 " + numbers);
  EXPECT_EQ(said(298, true), "Batch size 298 is acceptable for h100 " + numbers);
  EXPECT_EQ(said(319, true), "Batch size 319 is acceptable for h100 " + numbers);
  EXPECT_EQ(said(320, true), "Batch size 320 is optimal for h100 " + numbers);
}

TEST(ValidateBatchSize, IsInvalidOnlyBelowTheMinimum) {
  for (int i = 0; i < kHardwareTypeCount; ++i) {
    const auto type = static_cast<HardwareType>(i);
    const int64_t least = batch_size_advice(type).min_batch_size;
    for (bool warn : {true, false}) {
      EXPECT_FALSE(validate_batch_size(least - 1, type, warn).is_valid) << to_string(type);
      EXPECT_FALSE(validate_batch_size(std::numeric_limits<int64_t>::min(), type, warn).is_valid);
      EXPECT_TRUE(validate_batch_size(least, type, warn).is_valid) << to_string(type);
      EXPECT_TRUE(validate_batch_size(std::numeric_limits<int64_t>::max(), type, warn).is_valid);
    }
  }
}

}  // namespace
}  // namespace artifex_devices::planner
