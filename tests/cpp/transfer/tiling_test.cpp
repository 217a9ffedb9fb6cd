// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/transfer/tiling.h"

#include <gtest/gtest.h>

#include <numeric>

#include "../array/worlds.h"

namespace artifex_devices {
namespace {

using test::make_world;
using test::named;

TEST(TilingCopy, MatchesTheExampleInTheHeader) {
  // (8, 4) of bytes 0 .. 31 in 2 x 1 tiles, to 4 x 2 tiles that lie 8 bytes apart.
  std::vector<std::byte> from(32);
  for (size_t i = 0; i < 32; ++i) from[i] = static_cast<std::byte>(i);
  std::vector<std::byte> to(64);
  const Tiling source{from.data(), {4, 1}, {2}, 16};
  const Tiling target{to.data(), {2, 1}, {4, 2}, 8};
  const StridedCopy copy = tiling_copy(target, source, {8, 4}, 1);
  EXPECT_EQ(copy.bytes(), 32);
  copy.run();
  const auto at = [&](size_t tile, size_t i) { return static_cast<int>(to[tile * 8 + i]); };
  EXPECT_EQ(at(0, 0), 0);   // element (0, 0)
  EXPECT_EQ(at(0, 3), 5);   // (1, 1)
  EXPECT_EQ(at(1, 0), 2);   // (0, 2)
  EXPECT_EQ(at(5, 2), 22);  // (5, 2)
  EXPECT_EQ(at(7, 3), 31);  // (7, 3)
  EXPECT_EQ(at(7, 4), 0);   // padding is left alone
}

TEST(TilingCopy, RequiresPartsThatDivideEachDimension) {
  const auto world = make_world(1, 12);
  const auto divide = [&](const Dims& a, const Dims& b) {
    return parts_divide(named(world, a, {"a", "b"})->grid(), named(world, b, {"a", "b"})->grid(), 2);
  };
  EXPECT_TRUE(divide({2, 6}, {4, 3}));
  EXPECT_TRUE(divide({12, 1}, {1, 12}));
  EXPECT_FALSE(divide({2, 6}, {3, 2}));
  EXPECT_FALSE(divide({4, 3}, {4, 2}));
}

TEST(Tiling, ExistsForSlabsOfEvenTiles) {
  const auto world = make_world(2, 4);
  const auto tiling = [&](const ShardingRef& sharding, const Dims& shape) {
    const ShardDomains domains = sharding->domains(shape, "test");
    const auto storage = Storage::allocate(sharding, domains, DType::kInt16, "test");
    auto found = Tiling::of(*storage, domains, nullptr, 2);
    EXPECT_TRUE(!found || found->data == storage->device_data(BufferId(0)));
    return found;
  };
  const auto near = tiling(named(world, {2}, {"", "a"}), {3, 10});  // devices 0 and 1 share a memory
  ASSERT_TRUE(near);
  EXPECT_EQ(near->strides, (Dims{10, 2}));
  EXPECT_EQ(near->parts, (Dims{1, 2}));
  EXPECT_EQ(near->tile_stride, 64);
  EXPECT_FALSE(tiling(named(world, {4}, {"a"}), {4}));
  EXPECT_FALSE(tiling(named(world, {2}, {"a"}, Uneven::kLastShort), {3}));
  EXPECT_FALSE(tiling(named(world, {2}, {"a"}), {2, 1 << 20}));
}

}  // namespace
}  // namespace artifex_devices
