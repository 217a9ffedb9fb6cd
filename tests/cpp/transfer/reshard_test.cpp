// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/transfer/reshard.h"

#include <gtest/gtest.h>

#include <thread>

#include "artifex_devices/array/live_arrays.h"
#include "artifex_devices/base/config.h"
#include "artifex_devices/base/error.h"
#include "artifex_devices/transfer/device_get.h"
#include "artifex_devices/transfer/device_put.h"
#include "artifex_devices/transfer/planned_copies.h"
#include "host_arrays.h"

namespace artifex_devices {
namespace {

using test::Bytes;
using test::bytes_in_use;
using test::error_of;
using test::everywhere;
using test::make_world;
using test::named;
using test::Random;
using test::values;

/// Sets the two sizes that decide how a reshard runs.
class CopySizes {
 public:
  CopySizes(int64_t parallel, int64_t async)
      : parallel_(config().parallel_copy_bytes.exchange(parallel)), async_(config().async_copy_bytes.exchange(async)) {}
  ~CopySizes() {
    config().parallel_copy_bytes = parallel_;
    config().async_copy_bytes = async_;
  }

 private:
  int64_t parallel_;
  int64_t async_;
};

/// Sets how many copies are listed at most; more are computed where they are run.
class MostListed {
 public:
  explicit MostListed(int64_t count) : before_(PlannedCopies::most_listed.exchange(count)) {}
  ~MostListed() { PlannedCopies::most_listed = before_; }

 private:
  int64_t before_;
};

ArrayRef put(Random& random, const ShardingRef& sharding, const Dims& shape) {
  return device_put(test::dense(random, shape, DType::kFloat32), sharding, true);
}

/// An array that is not written yet: set its event when `data` is in place.
ArrayRef unfinished(const ShardingRef& sharding, const Dims& shape, const EventRef& ready) {
  auto storage = Storage::allocate(sharding, sharding->domains(shape, "test"), DType::kFloat32, "test");
  return Array::make(shape, DType::kFloat32, sharding, std::move(storage), ready, true);
}

void write(const ArrayRef& array, float value) {
  for (int64_t b = 0; b < array->storage()->buffer_count(); ++b) {
    auto* data = reinterpret_cast<float*>(array->storage()->device_data(BufferId(b)));
    std::fill(data, data + array->storage()->buffer_bytes(BufferId(b)) / 4, value);
  }
}

void expect_all(const ArrayRef& array, float value) {
  const auto view = device_get(array);
  const auto* data = static_cast<const float*>(view->data);
  for (int64_t i = 0; i < array->size(); ++i) ASSERT_EQ(data[i], value) << i;
}

class ReshardRandom : public testing::TestWithParam<int> {};

TEST_P(ReshardRandom, KeepsTheValueAndMovesThePlannedBytes) {
  Random random(static_cast<uint64_t>(GetParam()) + 100);
  const auto world = make_world(static_cast<int>(test::pick(random, 1, 4)), 8);
  for (int round = 0; round < 60; ++round) {
    // Small in one go, by plan at once, on workers, after the call.
    const int64_t huge = int64_t{1} << 40;
    const CopySizes sizes(round % 4 == 0 ? huge : 0, round % 4 == 3 ? 0 : huge);
    const MostListed listed(round % 3 == 0 ? 0 : huge);
    const Dims shape = test::random_shape(random);
    const HostView source = test::dense(random, shape, test::random_dtype(random));
    const auto [from, from_text] = test::random_layout(random, world, shape, round % 5 == 0);
    const auto [to, to_text] = test::random_layout(random, world, shape, round % 5 == 0);
    SCOPED_TRACE(to_string(shape) + " " + from_text + " -> " + to_text);
    ArrayRef array = device_put(source, from, true);
    ReshardOptions options;
    options.force_copy = round % 7 == 0;
    options.committed = round % 2 == 0;
    const ReshardPlan plan = plan_of_reshard(*array, *to);
    const TransferRecording recording;
    const ArrayRef result = reshard(array, to, options);
    result->block_until_ready();
    EXPECT_EQ(test::bytes_of(recording),
              options.force_copy ? plan.bytes_copied() + plan.bytes_reused() : plan.bytes_copied());
    EXPECT_EQ(result->committed(), options.committed);
    EXPECT_EQ(result->sharding(), to);
    if (test::pick(random, 0, 1)) array->delete_();
    test::expect_shards(result, source);
    ASSERT_EQ(values(*device_get(result)), values(source));
  }
}

INSTANTIATE_TEST_SUITE_P(seeds, ReshardRandom, testing::Range(0, 12));

TEST(Reshard, CountsTheBytesOfTheExample) {
  Random random(1);
  const auto world = make_world(1, 4);
  const ArrayRef array = put(random, named(world, {2}, {"a"}), {8});
  const ReshardPlan plan = plan_of_reshard(*array, *named(world, {4}, {"a"}));
  EXPECT_EQ(plan.copy_count(), 4);
  EXPECT_EQ(plan.bytes_copied(), 32);
}

/// Over `count` devices on `arenas`, and back.
void move_rows_to_columns(int arenas, int64_t count, const Dims& shape, Uneven uneven, bool reverse) {
  Random random(7);
  const auto world = make_world(arenas, count);
  std::vector<Device*> devices = test::devices_of(world);
  const MeshRef mesh = make_mesh({count}, {AxisName("a")}, {}, devices, "test");
  if (reverse) std::ranges::reverse(devices);
  const MeshRef other = make_mesh({count}, {AxisName("a")}, {}, devices, "test");
  const auto rows = NamedSharding::make(mesh, test::spec_of({"a"}), MemoryKind::kDevice, uneven);
  const auto columns = NamedSharding::make(other, test::spec_of({"", "a"}), MemoryKind::kDevice, uneven);
  const HostView source = test::dense(random, shape, DType::kInt8);
  const ArrayRef array = device_put(source, rows, true);
  const ArrayRef moved = reshard(array, columns, {});
  moved->block_until_ready();
  test::expect_shards(moved, source);
  const ArrayRef back = reshard(moved, rows, {});
  EXPECT_EQ(values(*device_get(back)), values(source));
}

TEST(Reshard, MovesRowsToColumns) {
  const int64_t count = 1024;  // a million pairs
  move_rows_to_columns(1, count, {count, 2 * count}, Uneven::kError, false);
  move_rows_to_columns(1, count, {count, 2 * count}, Uneven::kError, true);
  move_rows_to_columns(1, count, {count - 3, 2 * count - 5}, Uneven::kLastShort, true);
  move_rows_to_columns(4, count, {count, 2 * count}, Uneven::kError, false);
  move_rows_to_columns(4, count, {count - 3, 2 * count - 5}, Uneven::kLastShort, true);
}

TEST(ReshardAsync, DeliversErrorsToUnlistedResults) {
  const MostListed listed(0);
  const auto world = make_world(2, 8);
  auto ready = std::make_shared<Event>();
  const ArrayRef source = unfinished(named(world, {8}, {"a"}), {8, 8}, ready);
  const ArrayRef moved = reshard(source, named(world, {8}, {"", "a"}), {});
  ready->set_error(std::make_exception_ptr(InvalidArgument("the disk is gone")));
  EXPECT_EQ(error_of<InvalidArgument>([&] { moved->block_until_ready(); }), "the disk is gone");
}

TEST(Reshard, IsSynchronousOnASynchronousClient) {
  Random random(3);
  const CopySizes sizes(0, 0);  // else small ones are done at once anyway
  const auto world = Client::make(Machine::from_synthetic("pu:2"), {.num_devices = 2, .asynchronous = false});
  for (int round = 0; round < 20; ++round) {
    const ArrayRef array = put(random, named(world, {2}, {"a"}), {1 << 18});
    EXPECT_TRUE(reshard(array, named(world, {2}, {""}), {})->is_ready());
  }
}

TEST(Reshard, SharesAllMemoryOfAnEqualLayout) {
  Random random(2);
  const auto world = make_world(1, 8);
  for (const Dims& shape : {Dims{8, 16}, Dims{8, 1 << 16}}) {
    const ArrayRef array = put(random, named(world, {8}, {"a"}), shape);
    const TransferRecording recording;
    ArrayRef same = reshard(array, named(world, {8, 1}, {"ab"}), {});
    for (int64_t b = 0; b < 8; ++b)
      EXPECT_EQ(same->storage()->device_data(BufferId(b)), array->storage()->device_data(BufferId(b)));
    EXPECT_EQ(test::bytes_of(recording), 0);
    EXPECT_EQ(bytes_in_use(world), everywhere(world, array->nbytes() / 4));  // both arrays count
    same->delete_();
    EXPECT_FALSE(array->is_deleted());
    EXPECT_EQ(bytes_in_use(world), everywhere(world, array->nbytes() / 8));
  }
}

TEST(Reshard, KeepsASharedSlab) {
  Random random(3);
  const auto world = make_world(1, 8);
  const ArrayRef array = put(random, named(world, {8}, {"a"}), {8, 16});
  int64_t stride = 0;
  EXPECT_EQ(reshard(array, named(world, {8}, {"a"}), {})->storage()->slab(&stride),
            array->storage()->device_data(BufferId(0)));
  EXPECT_EQ(stride, 64);
}

TEST(Reshard, SharesNothingWithForceCopy) {
  Random random(4);
  const auto world = make_world(1, 4);
  const ArrayRef array = put(random, named(world, {4}, {"a"}), {8});
  ReshardOptions options;
  options.force_copy = true;
  const ArrayRef copy = reshard(array, array->sharding(), options);
  for (int64_t b = 0; b < 4; ++b)
    EXPECT_NE(copy->storage()->device_data(BufferId(b)), array->storage()->device_data(BufferId(b)));
  EXPECT_EQ(values(*device_get(copy)), values(*device_get(array)));
}

TEST(Reshard, DeletesADonatedSourceAndKeepsSharedBuffers) {
  Random random(5);
  const auto world = make_world(1, 4);
  const HostView source = test::dense(random, {4, 1 << 18}, DType::kFloat32);
  ReshardOptions options;
  options.donate = true;
  const int64_t before = test::arena_bytes_in_use(world);
  ArrayRef array = device_put(source, named(world, {4}, {"a"}), true);
  for (const ShardingRef& to : {named(world, {4}, {"", "a"}), named(world, {4}, {}), named(world, {4}, {"a"})}) {
    const ArrayRef moved = reshard(array, to, options);
    EXPECT_TRUE(array->is_deleted());
    EXPECT_EQ(values(*device_get(moved)), values(source));
    array = moved;
  }
  EXPECT_EQ(bytes_in_use(world), everywhere(world, 1 << 20));
  array.reset();
  EXPECT_EQ(test::arena_bytes_in_use(world), before);
}

TEST(Reshard, MovesAShard) {
  Random random(6);
  const auto world = make_world(2, 4);
  const HostView source = test::dense(random, {8, 4}, DType::kInt32);
  const ArrayRef array = device_put(source, named(world, {4}, {"a"}), true);
  const ArrayRef shard = array->shard_data(Position(3));
  const ArrayRef moved = reshard(shard, named(world, {2}, {"a"}), {});
  EXPECT_EQ(moved->shape(), (Dims{2, 4}));
  EXPECT_EQ(values(*device_get(moved)), values(*device_get(shard)));
  const ArrayRef near = reshard(shard, SingleDeviceSharding::make(world->device(DeviceId(2))), {});
  EXPECT_EQ(near->storage()->device_data(BufferId(0)), array->storage()->device_data(BufferId(3)));  // the same memory
  near->delete_();
  EXPECT_FALSE(array->is_deleted());
}

TEST(ReshardAsync, ReturnsBeforeTheSourceIsWritten) {
  const auto world = make_world(2, 4);
  const auto rows = named(world, {4}, {"a"});
  auto ready = std::make_shared<Event>();
  const ArrayRef source = unfinished(rows, {8, 8}, ready);
  const ArrayRef first = reshard(source, named(world, {4}, {"", "a"}), {});
  const ArrayRef second = reshard(first, named(world, {2, 2}, {"b", "a"}), {});
  const ArrayRef shared = reshard(source, named(world, {2, 2}, {"ab"}), {});
  EXPECT_FALSE(first->is_ready());
  EXPECT_FALSE(second->is_ready());
  EXPECT_FALSE(shared->is_ready());
  write(source, 3);
  ready->set();
  expect_all(second, 3);
  expect_all(first, 3);
  expect_all(shared, 3);
}

TEST(ReshardAsync, AllowsDeletionOfSourceAndIntermediates) {
  const auto world = make_world(1, 4);
  const int64_t before = test::arena_bytes_in_use(world);
  {
    auto ready = std::make_shared<Event>();
    ArrayRef source = unfinished(named(world, {4}, {"a"}), {64, 64}, ready);
    write(source, 4);
    ArrayRef first = reshard(source, named(world, {4}, {"", "a"}), {});
    const ArrayRef second = reshard(first, named(world, {4}, {}), {});
    source->delete_();
    first->delete_();
    source.reset();
    first.reset();
    ready->set();
    expect_all(second, 4);
    EXPECT_EQ(bytes_in_use(world), everywhere(world, 64 * 64 * 4));
    ready.reset();
  }
  EXPECT_EQ(test::arena_bytes_in_use(world), before);
}

TEST(ReshardAsync, FreesADeletedResultAfterTheCopy) {
  const auto world = make_world(1, 4);
  auto ready = std::make_shared<Event>();
  const ArrayRef source = unfinished(named(world, {4}, {"a"}), {4, 1 << 18}, ready);
  const int64_t before = test::arena_bytes_in_use(world);
  ArrayRef result = reshard(source, named(world, {4}, {"", "a"}), {});
  const EventRef done = result->ready_event();
  result->delete_();
  result.reset();
  EXPECT_EQ(test::arena_bytes_in_use(world) - before, 4 << 20);
  EXPECT_EQ(bytes_in_use(world), everywhere(world, 1 << 20));
  ready->set();
  wait_for(done);
  EXPECT_EQ(test::arena_bytes_in_use(world), before);
}

TEST(ReshardAsync, PropagatesErrorsAlongTheChain) {
  const auto world = make_world(1, 4);
  auto ready = std::make_shared<Event>();
  const ArrayRef source = unfinished(named(world, {4}, {"a"}), {8, 8}, ready);
  const ArrayRef first = reshard(source, named(world, {4}, {"", "a"}), {});
  const ArrayRef second = reshard(first, named(world, {4}, {}), {});
  ready->set_error(std::make_exception_ptr(InvalidArgument("the disk is gone")));
  EXPECT_EQ(error_of<InvalidArgument>([&] { second->block_until_ready(); }), "the disk is gone");
  EXPECT_EQ(error_of<InvalidArgument>([&] { device_get(first); }), "the disk is gone");
  const ArrayRef third = reshard(second, named(world, {4}, {"a"}), {});
  EXPECT_EQ(error_of<InvalidArgument>([&] { third->block_until_ready(); }), "the disk is gone");
}

TEST(ReshardAsync, FinishesLargeCopiesAfterTheCall) {
  Random random(7);
  const auto world = make_world(2, 8);
  const HostView source = test::dense(random, {1024, 2048}, DType::kFloat32);
  ArrayRef array = device_put(source, named(world, {8}, {"a"}), true);
  ReshardOptions options;
  options.donate = true;
  const std::vector<ShardingRef> way = {named(world, {8}, {"", "a"}), named(world, {2, 4}, {"a", "b"}),
                                        named(world, {4, 2}, {"b", "a"}), named(world, {8}, {"a"})};
  for (const ShardingRef& sharding : way) array = reshard(array, sharding, options);
  EXPECT_EQ(values(*device_get(array)), values(source));
  EXPECT_EQ(live_arrays(world.get()), (std::vector<ArrayRef>{array}));
}

TEST(Reshard, RefusesOtherWorlds) {
  Random random(8);
  const ArrayRef array = put(random, named(make_world(1, 2), {2}, {"a"}), {8});
  EXPECT_EQ(error_of<InvalidArgument>([&] { reshard(array, named(make_world(1, 2), {2}, {"a"}), {}); }),
            "device_put: the Array is on devices of another world than sharding NamedSharding(mesh=Mesh('a': 2, "
            "axis_types=(Auto,)), spec=P('a',), memory_kind=device); expected devices of one world; place its value: "
            "device_put(device_get(x), sharding)");
}

TEST(Reshard, LeavesTheSourceUnchangedOnFailure) {
  Random random(9);
  const auto world = make_world(1, 4, 1000);
  const ArrayRef array = put(random, named(world, {4}, {"a"}), {4, 128});
  ReshardOptions options;
  options.donate = true;
  EXPECT_THROW(reshard(array, named(world, {4}, {}), options), OutOfMemory);
  EXPECT_THROW(reshard(array, named(world, {3}, {"a"}), options), IndivisibleError);
  EXPECT_FALSE(array->is_deleted());
  EXPECT_EQ(bytes_in_use(world), everywhere(world, 512));
  array->delete_();
  EXPECT_EQ(
      error_of<DeletedArray>([&] { reshard(array, array->sharding(), {}); }),
      "device_put: the Array of shape (4, 128) and dtype float32 was deleted; create it again, or delete or donate "
      "it only after its last use");
}

TEST(ReshardThreads, MoveDuringConcurrentDeletion) {
  const auto world = make_world(2, 4);
  const CopySizes sizes(1024, 2048);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Random random(t);
      for (int i = 0; i < 40; ++i) {
        const HostView source = test::dense(random, {8, 8 * test::pick(random, 1, 40)}, DType::kFloat32);
        const ArrayRef array = device_put(source, named(world, {4}, {"a"}), true);
        std::thread deleter([&] { array->delete_(); });
        try {
          const ArrayRef moved = reshard(array, named(world, {2, 2}, {"a", "b"}), {});
          const ArrayRef back = reshard(moved, named(world, {4}, {"", "a"}), {});
          moved->delete_();
          if (values(*device_get(back)) != values(source)) ++wrong;
        } catch (const DeletedArray&) {
        }
        deleter.join();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(bytes_in_use(world), everywhere(world, 0));
}

}  // namespace
}  // namespace artifex_devices
