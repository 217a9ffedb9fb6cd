// SPDX-License-Identifier: Apache-2.0
// Arrays whose shards are stored in another order of dimensions.
#include <gtest/gtest.h>

#include <algorithm>

#include "artifex_devices/base/config.h"
#include "artifex_devices/base/error.h"
#include "artifex_devices/transfer/device_get.h"
#include "artifex_devices/transfer/device_put.h"
#include "artifex_devices/transfer/reshard.h"
#include "host_arrays.h"

namespace artifex_devices {
namespace {

using test::dense;
using test::make_world;
using test::named;
using test::pick;
using test::Random;
using test::values;

LayoutRef random_order(Random& random, int64_t rank) {
  Dims order(rank, 0);
  for (int64_t d = 0; d < rank; ++d) order[d] = d;
  std::shuffle(order.begin(), order.end(), random);
  return stored_layout(artifex_devices::Layout(order), rank, "test");
}

TEST(ArrayLayout, NormalizesRowMajorAndRefusesOtherRanks) {
  EXPECT_EQ(stored_layout(artifex_devices::Layout({1, 0}), 2, "test"), nullptr);
  EXPECT_EQ(stored_layout(artifex_devices::Layout({0}), 1, "test"), nullptr);
  EXPECT_EQ(stored_layout(artifex_devices::Layout({0, 1}), 2, "test")->to_string(), "{0,1}");
  EXPECT_THROW(stored_layout(artifex_devices::Layout({0}), 2, "test"), InvalidArgument);
}

TEST(ArrayLayout, StoresColumnsInColumnMajorMemory) {
  const auto world = make_world(1, 1);
  std::vector<float> source{1, 2, 3, 4, 5, 6};
  HostView view;
  view.data = source.data();
  view.shape = {2, 3};
  view.byte_strides = {12, 4};
  const ShardingRef sharding = SingleDeviceSharding::make(world->device(DeviceId(0)));
  const ArrayRef array = device_put(view, sharding, true, std::make_shared<const artifex_devices::Layout>(Dims{0, 1}));
  const auto* data = reinterpret_cast<const float*>(array->storage()->device_data(BufferId(0)));
  EXPECT_EQ(std::vector<float>(data, data + 6), (std::vector<float>{1, 4, 2, 5, 3, 6}));
  const auto shown = device_get(array);
  EXPECT_EQ(shown->data, data);
  EXPECT_EQ(shown->byte_strides, (Dims{4, 8}));
  EXPECT_EQ(array->shard_data(Position(0))->strides({2, 3}), (Dims{4, 8}));
  const ArrayRef turned = row_major(array);
  const auto* rows = reinterpret_cast<const float*>(turned->storage()->device_data(BufferId(0)));
  EXPECT_EQ(std::vector<float>(rows, rows + 6), source);
  EXPECT_EQ(row_major(turned), turned);
}

class ArrayLayoutRandom : public testing::TestWithParam<int> {};

TEST_P(ArrayLayoutRandom, KeepsTheValueInEveryMove) {
  Random random(static_cast<uint64_t>(GetParam()) + 900);
  const auto world = make_world(static_cast<int>(pick(random, 1, 3)), 8);
  const int64_t parallel = config().parallel_copy_bytes.load();
  const int64_t async = config().async_copy_bytes.load();
  for (int round = 0; round < 40; ++round) {
    const int64_t huge = int64_t{1} << 40;
    config().parallel_copy_bytes = round % 4 == 0 ? huge : 0;
    config().async_copy_bytes = round % 4 == 3 ? 0 : huge;
    const Dims shape = test::random_shape(random);
    const HostView source = test::strided(random, shape, test::random_dtype(random));
    const auto [from, from_text] = test::random_layout(random, world, shape, round % 5 == 0);
    const auto [to, to_text] = test::random_layout(random, world, shape, round % 5 == 0);
    const LayoutRef first = random_order(random, shape.size());
    const LayoutRef second = random_order(random, shape.size());
    SCOPED_TRACE(to_string(shape) + " " + from_text + " -> " + to_text);
    const ArrayRef array = device_put(source, from, true, first);
    EXPECT_EQ(values(*device_get(array)), values(source));
    const ArrayRef kept = reshard(array, to, {});
    EXPECT_TRUE(equal_layouts(kept->layout(), first));
    EXPECT_EQ(values(*device_get(kept)), values(source));
    const ArrayRef moved = reshard(array, to, {.layout = second});
    EXPECT_TRUE(equal_layouts(moved->layout(), second));
    EXPECT_EQ(values(*device_get(moved)), values(source));
    for (const Position position : moved->sharding()->positions()) {
      const ArrayRef shard = moved->shard_data(position);
      EXPECT_EQ(device_get(shard)->byte_strides, shard->strides(shard->shape()));
    }
  }
  config().parallel_copy_bytes = parallel;
  config().async_copy_bytes = async;
}

INSTANTIATE_TEST_SUITE_P(Seeds, ArrayLayoutRandom, testing::Range(0, 4));

}  // namespace
}  // namespace artifex_devices
