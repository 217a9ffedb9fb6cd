// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/transfer/device_get.h"

#include <gtest/gtest.h>

#include <thread>

#include "artifex_devices/base/error.h"
#include "artifex_devices/transfer/device_put.h"
#include "artifex_devices/transfer/reshard.h"
#include "artifex_devices/transfer/row_major_tiles.h"
#include "host_arrays.h"

namespace artifex_devices {
namespace {

using test::error_of;
using test::make_world;
using test::named;
using test::Random;
using test::values;

TEST(DeviceGet, ReturnsOneBufferWithoutACopy) {
  Random random(1);
  const auto world = make_world(2, 4);
  const HostView source = test::dense(random, {4, 4}, DType::kFloat32);
  for (const ShardingRef& sharding :
       {named(world, {4}, {}), ShardingRef(SingleDeviceSharding::make(world->device(DeviceId(1))))}) {
    const ArrayRef array = device_put(source, sharding, true);
    EXPECT_EQ(device_get(array)->data, array->storage()->device_data(BufferId(0)));
  }
}

TEST(DeviceGet, ReturnsRowsOfOneSlabWithoutACopy) {
  Random random(2);
  const HostView source = test::dense(random, {8, 32}, DType::kFloat32);
  const ArrayRef array = device_put(source, named(make_world(1, 4), {4}, {"a"}), true);
  const auto view = device_get(array);
  EXPECT_EQ(view->data, array->storage()->device_data(BufferId(0)));
  EXPECT_EQ(values(*view), values(source));
}

TEST(DeviceGet, GathersRowsWithPadding) {
  Random random(3);
  const HostView source = test::dense(random, {8, 3}, DType::kFloat32);
  const ArrayRef array = device_put(source, named(make_world(1, 4), {4}, {"a"}), true);
  EXPECT_EQ(values(*device_get(array)), values(source));
}

TEST(DeviceGet, GathersOnceAndCachesTheValue) {
  Random random(4);
  const auto world = make_world(1, 4);
  const HostView source = test::dense(random, {8, 32}, DType::kFloat32);
  const ArrayRef array = device_put(source, named(world, {4}, {"", "a"}), true);
  const int64_t before = test::arena_bytes_in_use(world);
  EXPECT_EQ(device_get(array), device_get(array));
  EXPECT_EQ(test::arena_bytes_in_use(world) - before, 1024);
  array->delete_();
  EXPECT_EQ(test::arena_bytes_in_use(world), before - 1024);
}

TEST(DeviceGet, KeepsMemoryUntilTheViewIsReleased) {
  Random random(5);
  const auto world = make_world(2, 4);
  const int64_t before = test::arena_bytes_in_use(world);
  const HostView source = test::dense(random, {512, 1024}, DType::kFloat32);
  for (const std::string_view cut : {"", "a"}) {
    ArrayRef array = device_put(source, named(world, {4}, {cut, ""}), true);
    auto view = device_get(array);
    const std::shared_ptr<void> owner = view->owner;
    const HostView copy = *view;
    array->delete_();
    array.reset();
    view.reset();
    EXPECT_EQ(test::bytes_in_use(world), test::everywhere(world, 0));
    EXPECT_EQ(test::arena_bytes_in_use(world) - before, 2 << 20);
    EXPECT_EQ(values(copy), values(source));
  }
  EXPECT_EQ(test::arena_bytes_in_use(world), before);
}

TEST(DeviceGet, ReturnsAShardWithoutACopy) {
  Random random(6);
  const HostView source = test::dense(random, {8, 3}, DType::kInt8);
  const ArrayRef array = device_put(source, named(make_world(2, 4), {4}, {"a"}), true);
  const ArrayRef shard = array->shard_data(Position(3));
  const auto view = device_get(shard);
  EXPECT_EQ(view->shape, (Dims{2, 3}));
  EXPECT_EQ(view->data, array->storage()->device_data(BufferId(3)));
  HostView last = source;
  last.shape = {2, 3};
  last.data = static_cast<std::byte*>(source.data) + 18;
  EXPECT_EQ(values(*view), values(last));
}

TEST(DeviceGet, RefusesDeletedArrays) {
  Random random(7);
  const ArrayRef array = device_put(test::dense(random, {8}, DType::kInt8), named(make_world(1, 4), {4}, {"a"}), true);
  array->delete_();
  EXPECT_EQ(error_of<DeletedArray>([&] { device_get(array); }),
            "device_get: the Array of shape (8,) and dtype int8 was deleted; create it again, or delete or donate it "
            "only after its last use");
}

TEST(DeviceGet, WaitsForTheArrayAndRethrowsItsError) {
  const auto world = make_world(1, 2);
  const auto sharding = named(world, {2}, {"a"});
  for (const bool fails : {false, true}) {
    auto storage = Storage::allocate(sharding, sharding->domains({2}, "test"), DType::kInt8, "test");
    auto ready = std::make_shared<Event>();
    const ArrayRef array = Array::make({2}, DType::kInt8, sharding, storage, ready, true);
    std::thread writer([&] {
      storage->device_data(BufferId(0))[0] = std::byte{1};
      storage->device_data(BufferId(1))[0] = std::byte{2};
      fails ? ready->set_error(std::make_exception_ptr(InvalidArgument("broken"))) : ready->set();
    });
    if (fails) {
      EXPECT_EQ(error_of<InvalidArgument>([&] { device_get(array); }), "broken");
    } else {
      EXPECT_EQ(values(*device_get(array)), (test::ByteArray{std::byte{1}, std::byte{2}}));
    }
    writer.join();
  }
}

TEST(DeviceGet, ReturnsOneValueToConcurrentReaders) {
  Random random(9);
  const auto world = make_world(1, 4);
  for (int round = 0; round < 30; ++round) {
    const HostView source = test::dense(random, {16, 16}, DType::kInt16);
    const ArrayRef array = device_put(source, named(world, {4}, {"", "a"}), true);
    std::vector<std::shared_ptr<const HostView>> found(4);
    std::vector<std::thread> threads;
    for (auto& each : found) threads.emplace_back([&] { each = device_get(array); });
    for (std::thread& thread : threads) thread.join();
    for (const auto& each : found) EXPECT_EQ(each, found[0]);
    EXPECT_EQ(values(*found[0]), values(source));
  }
}

TEST(RowMajorTiles, AreRecognized) {
  const auto world = make_world(1, 4);
  const auto in_order = [&](const Dims& mesh, const std::vector<std::string_view>& spec, const Dims& shape,
                            Uneven uneven = Uneven::kError) {
    const ShardingRef sharding = named(world, mesh, spec, uneven);
    return tiles_are_row_major(sharding->domains(shape, "test"));
  };
  EXPECT_TRUE(in_order({4}, {}, {8, 4}));
  EXPECT_TRUE(in_order({4}, {"a"}, {8, 4}));
  EXPECT_FALSE(in_order({4}, {"", "a"}, {8, 4}));
  EXPECT_TRUE(in_order({4}, {"", "a"}, {1, 4}));
  EXPECT_TRUE(in_order({2, 2}, {"a", "b"}, {2, 4}));
  EXPECT_FALSE(in_order({2, 2}, {"a", "b"}, {4, 4}));
  EXPECT_TRUE(in_order({4}, {"a"}, {7, 4}, Uneven::kLastShort));
  EXPECT_FALSE(in_order({2, 2}, {"a", "b"}, {1, 4}, Uneven::kLastShort));
}

TEST(RowMajorTiles, RecognizeDenseStrides) {
  EXPECT_TRUE(is_dense({2, 3}, {12, 4}, 4));
  EXPECT_FALSE(is_dense({2, 3}, {16, 4}, 4));
  EXPECT_FALSE(is_dense({2, 3}, {4, 8}, 4));
  EXPECT_TRUE(is_dense({2, 1, 3}, {12, 999, 4}, 4));
  EXPECT_TRUE(is_dense({2, 0}, {7, -3}, 4));
  EXPECT_FALSE(is_dense({3}, {-4}, 4));
  EXPECT_TRUE(is_dense({}, {}, 4));
}

}  // namespace
}  // namespace artifex_devices
