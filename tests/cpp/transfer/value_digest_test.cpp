// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/transfer/value_digest.h"

#include <gtest/gtest.h>

#include <set>

#include "host_arrays.h"

namespace artifex_devices {
namespace {

TEST(ValueDigest, DependsOnBitsShapeAndDtypeAndNotOnStrides) {
  test::Random random(1);
  for (int round = 0; round < 50; ++round) {
    const HostView strided = test::strided(random, test::random_shape(random), test::random_dtype(random));
    const test::ByteArray bytes = test::values(strided);
    HostView dense = strided;
    auto copy = bytes;
    dense.data = copy.data();
    dense.byte_strides = row_major_strides(dense.shape, itemsize(dense.dtype));
    EXPECT_EQ(digest_of_value(strided), digest_of_value(dense));
  }
}

TEST(ValueDigest, EveryBitCounts) {
  test::ByteArray bytes(200);
  HostView view;
  view.dtype = DType::kUInt8;
  view.shape = {200};
  view.byte_strides = {1};
  view.data = bytes.data();
  std::set<std::array<uint64_t, 2>> seen{digest_of_value(view)};
  std::set<uint64_t> halves;
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      bytes[i] ^= static_cast<std::byte>(1 << bit);
      const auto digest = digest_of_value(view);
      EXPECT_TRUE(seen.insert(digest).second) << i << " " << bit;
      EXPECT_TRUE(halves.insert(digest[0]).second);
      bytes[i] ^= static_cast<std::byte>(1 << bit);
    }
  }
  view.shape = {199};
  EXPECT_TRUE(seen.insert(digest_of_value(view)).second);
  view.shape = {100, 2};
  view.byte_strides = {2, 1};
  EXPECT_TRUE(seen.insert(digest_of_value(view)).second);
  view.shape = {200};
  view.byte_strides = {1};
  view.dtype = DType::kInt8;
  EXPECT_TRUE(seen.insert(digest_of_value(view)).second);
  view.shape = {0};
  EXPECT_TRUE(seen.insert(digest_of_value(view)).second);
}

}  // namespace
}  // namespace artifex_devices
