// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/transfer/copy_views.h"

#include <gtest/gtest.h>

#include "artifex_devices/base/error.h"
#include "host_arrays.h"

namespace artifex_devices {
namespace {

using test::error_of;
using test::Random;
using test::values;

TEST(CopyViews, CopiesArraysOfAnyStrides) {
  Random random(1);
  std::vector<ViewCopy> copies;
  for (int i = 0; i < 20; ++i) {
    const Dims shape = test::random_shape(random);
    const DType dtype = test::random_dtype(random);
    copies.push_back({test::strided(random, shape, dtype, true), test::strided(random, shape, dtype)});
  }
  copy_views(copies);
  for (const auto& [to, from] : copies) EXPECT_EQ(values(to), values(from));
}

TEST(CopyViews, ArraysAtEqualDistancesAreOneCopy) {
  std::vector<int32_t> from(6 * 8), to(6 * 8, -1);
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<int32_t>(i);
  std::vector<ViewCopy> copies;  // row i of 6 becomes column i
  for (int64_t i = 0; i < 6; ++i) {
    copies.push_back({{to.data() + i, DType::kInt32, Dims{8}, Dims{24}, true},
                      {from.data() + i * 8, DType::kInt32, Dims{8}, Dims{4}}});
  }
  EXPECT_EQ(batch_of(copies).listed().size(), 1);
  copy_views(copies);
  for (size_t i = 0; i < 6; ++i) {
    for (size_t j = 0; j < 8; ++j) EXPECT_EQ(to[j * 6 + i], from[i * 8 + j]);
  }
  std::swap(copies[1], copies[2]);
  EXPECT_EQ(batch_of(copies).listed().size(), 6);
  EXPECT_EQ(batch_of(std::span(copies).first(2)).listed().size(), 1);
  EXPECT_EQ(batch_of(std::span(copies).first(1)).listed().size(), 1);
  EXPECT_EQ(batch_of({}).listed().size(), 0);
}

TEST(CopyViews, CopiesNothingWhereOnePairDoesNotFit) {
  Random random(2);
  const HostView from = test::dense(random, {4}, DType::kInt8);
  const HostView to = test::dense(random, {4}, DType::kInt8);
  const auto before = values(to);
  HostView read_only = to;
  read_only.writable = false;
  EXPECT_EQ(error_of<InvalidArgument>([&] { copy_views(std::vector<ViewCopy>{{to, from}, {read_only, from}}); }),
            "copy_views: destination 1 is read-only int8(4,) and its source int8(4,); expected a writable destination "
            "of that dtype and shape");
  EXPECT_THROW(copy_views(std::vector<ViewCopy>{{to, test::dense(random, {5}, DType::kInt8)}}), InvalidArgument);
  EXPECT_THROW(copy_views(std::vector<ViewCopy>{{to, test::dense(random, {4}, DType::kUInt8)}}), InvalidArgument);
  EXPECT_EQ(values(to), before);
}

}  // namespace
}  // namespace artifex_devices
