// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/base/byte_count.h"

#include <gtest/gtest.h>

#include "message_of.h"

namespace artifex_devices {
namespace {

constexpr int64_t kHuge = int64_t{1} << 40;

TEST(DenseBytes, CountAllElements) {
  EXPECT_EQ(dense_bytes({}, 4), 4);
  EXPECT_EQ(dense_bytes({2, 3}, 4), 24);
  EXPECT_EQ(dense_bytes({0}, 4), 0);
  EXPECT_EQ(dense_bytes({kHuge, 0, 5}, 4), 0);
  EXPECT_EQ(dense_bytes({int64_t{1} << 31, int64_t{1} << 31}, 1), int64_t{1} << 62);
}

TEST(DenseBytes, CountSizesOfZeroAsOneWhereTheyDoNotFit) {
  for (const Dims& shape : {Dims{0, kHuge, kHuge}, Dims{kHuge, 0, kHuge}, Dims{kHuge, kHuge, 0}, Dims{kHuge, kHuge}}) {
    EXPECT_EQ(dense_bytes(shape, 1), std::nullopt) << to_string(shape);
  }
  EXPECT_EQ(dense_bytes({0, int64_t{1} << 62}, 1), 0);
  EXPECT_EQ(dense_bytes({0, int64_t{1} << 62}, 2), std::nullopt);
}

TEST(CheckedBytes, ReportTheSizeThatDoesNotFit) {
  const auto message = [](const Dims& shape, DType dtype) {
    return message_of([&] { checked_bytes(shape, dtype, "f"); });
  };
  EXPECT_EQ(checked_bytes({2, 3}, DType::kFloat32, "f"), 24);
  EXPECT_EQ(message({0, kHuge, kHuge}, DType::kInt8),
            "f: shape (0, 1099511627776, 1099511627776) of int8 is more bytes than fit 63 bits, counting sizes of 0 as "
            "1; use smaller sizes");
  EXPECT_EQ(message({int64_t{1} << 62}, DType::kFloat32),
            "f: shape (4611686018427387904,) of float32 is more bytes than fit 63 bits; use smaller sizes");
  EXPECT_EQ(message({0, -1}, DType::kInt8),
            "f: dimension 1 of (0, -1) is -1; expected sizes of 0 or more; give the size itself, not -1");
}

}  // namespace
}  // namespace artifex_devices
