// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/base/shape.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <utility>

#include "artifex_devices/base/error.h"

namespace artifex_devices {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

std::string message_of(const Dims& dims) {
  try {
    checked_product(dims, "device_put");
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "no error";
}

TEST(Dims, PrintAsPythonTuples) {
  EXPECT_EQ(to_string(Dims{}), "()");
  EXPECT_EQ(to_string(Dims{8}), "(8,)");
  EXPECT_EQ(to_string(Dims{8, 16}), "(8, 16)");
  EXPECT_EQ(to_string(Dims{-1, 0, 7}), "(-1, 0, 7)");
}

TEST(Dims, StoreManyDimensionsOnTheHeap) {
  Dims dims;
  for (int64_t i = 0; i < 40; ++i) dims.push_back(i * i);
  ASSERT_EQ(dims.size(), 40);
  for (int64_t i = 0; i < 40; ++i) EXPECT_EQ(dims[i], i * i);
  EXPECT_EQ(dims.back(), 39 * 39);
}

TEST(Dims, CopyIndependently) {
  for (const int64_t count : {3, 20}) {
    Dims a(count, 5);
    Dims b = a;
    b[0] = 6;
    EXPECT_EQ(a, Dims(count, 5));
    a = b;
    EXPECT_EQ(a[0], 6);
    a = *&a;
    EXPECT_EQ(a, b);
  }
}

TEST(Dims, AreEmptyAndReusableAfterAMove) {
  for (const int64_t count : {3, 20}) {
    Dims a(count, 5);
    Dims b = std::move(a);
    EXPECT_EQ(b, Dims(count, 5));
    EXPECT_TRUE(a.empty());  // NOLINT(bugprone-use-after-move): that it is empty is the promise
    a.push_back(1);
    EXPECT_EQ(a, Dims{1});
    a = std::move(b);
    EXPECT_EQ(a, Dims(count, 5));
    EXPECT_TRUE(b.empty());  // NOLINT(bugprone-use-after-move)
  }
}

TEST(Dims, KeepTheFirstValuesWhenResized) {
  Dims dims{1, 2, 3};
  dims.resize(5, 9);
  EXPECT_EQ(dims, (Dims{1, 2, 3, 9, 9}));
  dims.resize(9, 8);
  EXPECT_EQ(dims, (Dims{1, 2, 3, 9, 9, 8, 8, 8, 8}));
  dims.resize(2, 0);
  EXPECT_EQ(dims, (Dims{1, 2}));
  dims.resize(0, 0);
  EXPECT_TRUE(dims.empty());
}

TEST(Dims, CompareAsSequences) {
  EXPECT_EQ((Dims{1, 2}), (Dims{1, 2}));
  EXPECT_NE((Dims{1, 2}), (Dims{1, 2, 1}));
  EXPECT_NE((Dims{1, 2}), (Dims{2, 1}));
  EXPECT_LT((Dims{1, 2}), (Dims{1, 3}));
  EXPECT_LT((Dims{1}), (Dims{1, 0}));
  EXPECT_GT((Dims{2}), (Dims{1, 9}));
}

TEST(Dims, HashEqualValuesEqually) {
  EXPECT_EQ(hash_value(Dims{4, 8}), hash_value(Dims{4, 8}));
  std::set<size_t> hashes;
  for (int64_t a = 0; a < 32; ++a) {
    for (int64_t b = 0; b < 32; ++b) hashes.insert(hash_value(Dims{a, b}));
  }
  hashes.insert(hash_value(Dims{}));
  hashes.insert(hash_value(Dims{0}));
  hashes.insert(hash_value(Dims{0, 0, 0}));
  EXPECT_EQ(hashes.size(), 32u * 32u + 3u);
}

TEST(CheckedArithmetic, ReturnsNothingOnOverflow) {
  EXPECT_EQ(checked_mul(kMost / 2, 2), kMost - 1);
  EXPECT_EQ(checked_mul(kMost / 2 + 1, 2), std::nullopt);
  EXPECT_EQ(checked_mul(std::numeric_limits<int64_t>::min(), -1), std::nullopt);
  EXPECT_EQ(checked_mul(-3, 4), -12);
  EXPECT_EQ(checked_add(kMost, 0), kMost);
  EXPECT_EQ(checked_add(kMost, 1), std::nullopt);
  EXPECT_EQ(checked_add(-5, 2), -3);
}

TEST(CheckedProduct, MultipliesSizes) {
  EXPECT_EQ(checked_product({}, "f"), 1);
  EXPECT_EQ(checked_product({2, 3, 4}, "f"), 24);
  EXPECT_EQ(checked_product({5, 0, 4}, "f"), 0);
  EXPECT_EQ(checked_product({kMost}, "f"), kMost);
}

TEST(CheckedProduct, IsZeroForEmptyShapesOfAnySize) {
  EXPECT_EQ(checked_product({kMost, kMost, 0}, "f"), 0);
  EXPECT_EQ(checked_product({0, kMost, kMost}, "f"), 0);
}

TEST(CheckedProduct, NamesTheNegativeSize) {
  EXPECT_EQ(message_of({4, -2}),
            "device_put: dimension 1 of (4, -2) is -2; expected sizes of 0 or more; give the size itself, not -1");
  EXPECT_EQ(message_of({kMost, kMost, -1}).find("dimension 2 of"), 12u);
}

TEST(CheckedProduct, RefusesProductsOver63Bits) {
  EXPECT_EQ(message_of({int64_t{1} << 32, int64_t{1} << 31}),
            "device_put: the product of the sizes (4294967296, 2147483648) does not fit 63 bits; expected at most "
            "9223372036854775807; use smaller sizes");
  EXPECT_EQ(checked_product({int64_t{1} << 31, int64_t{1} << 31}, "f"), int64_t{1} << 62);
  // A product that wraps around to a small number is refused too.
  EXPECT_NE(message_of({int64_t{1} << 32, int64_t{1} << 32, 2}), "no error");
}

TEST(RowMajorStrides, CountBytesFromTheLastDimension) {
  EXPECT_EQ(row_major_strides({2, 3}, 4), (Dims{12, 4}));
  EXPECT_EQ(row_major_strides({}, 4), Dims{});
  EXPECT_EQ(row_major_strides({7}, 2), Dims{2});
  EXPECT_EQ(row_major_strides({2, 3, 5, 7}, 8), (Dims{840, 280, 56, 8}));
}

TEST(RowMajorStrides, TreatEmptyDimensionsAsOne) { EXPECT_EQ(row_major_strides({2, 0, 5}, 4), (Dims{20, 20, 4})); }

}  // namespace
}  // namespace artifex_devices
