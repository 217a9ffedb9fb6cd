// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/array/array.h"

#include <gtest/gtest.h>

#include <thread>

#include "artifex_devices/array/live_arrays.h"
#include "artifex_devices/base/error.h"
#include "worlds.h"

namespace artifex_devices {
namespace {

using test::Bytes;
using test::bytes_in_use;
using test::error_of;
using test::everywhere;
using test::make_world;
using test::named;

ArrayRef make_array(const ShardingRef& sharding, const Dims& shape, EventRef ready = nullptr,
                    DType dtype = DType::kFloat32) {
  auto storage = Storage::allocate(sharding, sharding->domains(shape, "test"), dtype, "test");
  return Array::make(shape, dtype, sharding, std::move(storage), std::move(ready), true);
}

TEST(Array, ReportsItsShapeAndBytes) {
  const auto world = make_world(1, 8);
  const ArrayRef array = make_array(named(world, {2, 4}, {"a"}), {8, 3}, nullptr, DType::kComplex64);
  EXPECT_EQ(array->shape(), (Dims{8, 3}));
  EXPECT_EQ(array->rank(), 2);
  EXPECT_EQ(array->size(), 24);
  EXPECT_EQ(array->nbytes(), 192);
  EXPECT_EQ(array->on_device_size_in_bytes(), 4 * 192);
  EXPECT_FALSE(array->is_shard());
}

TEST(Array, SharesMemoryWithShardData) {
  const auto world = make_world(1, 4);
  const ArrayRef array = make_array(named(world, {4}, {"a"}), {8});
  const ArrayRef shard = array->shard_data(Position(3));
  EXPECT_EQ(shard->shape(), Dims{2});
  EXPECT_EQ(*shard->sharding(), *SingleDeviceSharding::make(world->device(DeviceId(3))));
  EXPECT_TRUE(shard->is_shard());
  EXPECT_EQ(shard->buffer_at(Position(0)), BufferId(3));
  EXPECT_EQ(shard->storage()->device_data(shard->buffer_at(Position(0))), array->storage()->device_data(BufferId(3)));
  EXPECT_EQ(shard->on_device_size_in_bytes(), 8);
  EXPECT_EQ(shard->shard_data(Position(0))->buffer_at(Position(0)), BufferId(3));
  EXPECT_EQ(bytes_in_use(world), everywhere(world, 8));
}

TEST(Array, LeavesShardsValidAfterItsDestruction) {
  const auto world = make_world(1, 4);
  ArrayRef array = make_array(named(world, {4}, {"a"}), {8});
  array->storage()->device_data(BufferId(3))[7] = std::byte{9};
  ArrayRef shard = array->shard_data(Position(3));
  array.reset();
  EXPECT_EQ(bytes_in_use(world), (Bytes{0, 0, 0, 8}));
  EXPECT_FALSE(shard->is_deleted());
  EXPECT_EQ(shard->storage()->buffer(BufferId(3)).host_data()[7], std::byte{9});
  shard.reset();
  EXPECT_EQ(bytes_in_use(world), everywhere(world, 0));
}

TEST(Array, IsDeletedWithItsShards) {
  const auto world = make_world(1, 2);
  for (const bool by_shard : {false, true}) {
    const ArrayRef array = make_array(named(world, {2}, {"a"}), {8});
    const ArrayRef shard = array->shard_data(Position(0));
    (by_shard ? shard : array)->delete_();
    EXPECT_TRUE(array->is_deleted());
    EXPECT_TRUE(shard->is_deleted());
    EXPECT_EQ(bytes_in_use(world), everywhere(world, 0));
    array->delete_();
  }
}

TEST(Array, ReportsItsDeletion) {
  const auto world = make_world(1, 2);
  const ArrayRef array = make_array(named(world, {2}, {"a"}), {8});
  array->delete_();
  EXPECT_EQ(error_of<DeletedArray>([&] { array->check_alive("add"); }),
            "add: the Array of shape (8,) and dtype float32 was deleted; create it again, or delete or donate it only "
            "after its last use");
  EXPECT_THROW(array->shard_data(Position(0)), DeletedArray);
  EXPECT_THROW(array->block_until_ready(), DeletedArray);
  EXPECT_THROW(array->is_ready(), DeletedArray);
}

TEST(Array, RefusesPositionsOutOfRange) {
  const ArrayRef array = make_array(named(make_world(1, 2), {2}, {"a"}), {8});
  EXPECT_EQ(error_of<IndexOutOfRange>([&] { array->shard_data(Position(2)); }),
            "shard_data: position 2 is outside the sharding; expected 0 to 1");
  EXPECT_THROW(array->shard_data(Position(-1)), IndexOutOfRange);
}

TEST(Array, IsReadyWhenItsEventIsSet) {
  auto ready = std::make_shared<Event>();
  const ArrayRef array = make_array(named(make_world(1, 2), {2}, {"a"}), {8}, ready);
  const ArrayRef shard = array->shard_data(Position(1));
  EXPECT_FALSE(array->is_ready());
  EXPECT_FALSE(shard->is_ready());
  ready->set();
  EXPECT_TRUE(array->is_ready());
  EXPECT_TRUE(shard->is_ready());
  array->block_until_ready();
}

TEST(Array, RethrowsErrorsFromBlockUntilReady) {
  auto ready = std::make_shared<Event>();
  const ArrayRef array = make_array(named(make_world(1, 2), {2}, {"a"}), {8}, ready);
  ready->set_error(std::make_exception_ptr(InvalidArgument("broken")));
  EXPECT_EQ(error_of<InvalidArgument>([&] { array->block_until_ready(); }), "broken");
}

TEST(Array, KeepsItsClientAlive) {
  auto world = make_world(1, 2);
  const std::weak_ptr<Client> watch = world;
  ArrayRef array = make_array(named(world, {2}, {"a"}), {8});
  ArrayRef shard = array->shard_data(Position(1));
  world.reset();
  array.reset();
  EXPECT_FALSE(watch.expired());
  shard.reset();
  EXPECT_TRUE(watch.expired());
}

TEST(LiveArrays, AreListedExactlyAndByAge) {
  const auto world = make_world(1, 2);
  const auto other = make_world(1, 2);
  EXPECT_TRUE(live_arrays(world.get()).empty());
  const auto sharding = named(world, {2}, {"a"});
  const ArrayRef first = make_array(sharding, {2});
  ArrayRef second = make_array(sharding, {4});
  const ArrayRef third = make_array(sharding, {6});
  const ArrayRef foreign = make_array(named(other, {2}, {"a"}), {8});
  const ArrayRef shard = first->shard_data(Position(0));
  EXPECT_EQ(live_arrays(world.get()), (std::vector<ArrayRef>{first, second, third}));
  EXPECT_EQ(live_arrays(nullptr), (std::vector<ArrayRef>{first, second, third, foreign}));
  second.reset();
  EXPECT_EQ(live_arrays(world.get()), (std::vector<ArrayRef>{first, third}));
  third->delete_();
  EXPECT_EQ(live_arrays(world.get()), (std::vector<ArrayRef>{first}));
}

TEST(LiveArrays, ListTheLargestFirst) {
  const auto world = make_world(1, 8);
  EXPECT_EQ(biggest_live_arrays(*world, 3), "none");
  const ArrayRef small = make_array(SingleDeviceSharding::make(world->device(DeviceId(0))), {3});
  const ArrayRef cut = make_array(named(world, {8}, {"a"}), {512, 1024});
  const ArrayRef copied = make_array(named(world, {8}, {}), {256}, nullptr, DType::kInt64);
  EXPECT_EQ(biggest_live_arrays(*world, 2),
            "float32(512, 1024) over 8 devices, 2.0 MiB; int64(256,) over 8 devices, 16.0 KiB");
  EXPECT_EQ(biggest_live_arrays(*world, 9),
            "float32(512, 1024) over 8 devices, 2.0 MiB; int64(256,) over 8 devices, 16.0 KiB; float32(3,) over 1 "
            "device, 12 bytes");
}

TEST(LiveArrays, CanBeListedDuringConcurrentChanges) {
  const auto world = make_world(1, 2);
  const auto sharding = named(world, {2}, {"a"});
  const ArrayRef stays = make_array(sharding, {2});
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      while (!stop) {
        const ArrayRef array = make_array(sharding, {2});
        if (array->size() % 2) array->delete_();
      }
    });
  }
  for (int i = 0; i < 500; ++i) {
    const auto found = live_arrays(world.get());
    ASSERT_GE(found.size(), 1u);
    ASSERT_LE(found.size(), 3u);
    ASSERT_EQ(found[0], stays);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(live_arrays(world.get()), (std::vector<ArrayRef>{stays}));
}

}  // namespace
}  // namespace artifex_devices
