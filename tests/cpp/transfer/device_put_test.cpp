// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/transfer/device_put.h"

#include <gtest/gtest.h>

#include <numeric>
#include <thread>

#include "artifex_devices/array/live_arrays.h"
#include "artifex_devices/base/config.h"
#include "artifex_devices/base/error.h"
#include "artifex_devices/base/interrupt.h"
#include "artifex_devices/transfer/device_get.h"
#include "artifex_devices/transfer/reshard.h"
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

/// Sets config().parallel_copy_bytes for a test, so that small copies take the way of big ones.
class ParallelFrom {
 public:
  explicit ParallelFrom(int64_t bytes) : before_(config().parallel_copy_bytes.exchange(bytes)) {}
  ~ParallelFrom() { config().parallel_copy_bytes = before_; }

 private:
  int64_t before_;
};

HostView view_of(std::vector<float>& data, const Dims& shape) {
  HostView view;
  view.data = data.data();
  view.shape = shape;
  view.byte_strides = row_major_strides(shape, 4);
  view.writable = true;
  return view;
}

float at(const ArrayRef& array, int64_t position, int64_t i) {
  return reinterpret_cast<const float*>(array->storage()->device_data(array->buffer_at(Position(position))))[i];
}

TEST(DevicePut, ShardsRows) {
  const auto world = make_world(1, 4);
  std::vector<float> data(32);
  std::iota(data.begin(), data.end(), 0.0f);
  const ArrayRef array = device_put(view_of(data, {8, 4}), named(world, {4}, {"a"}), true);
  EXPECT_EQ(array->shape(), (Dims{8, 4}));
  EXPECT_EQ(array->shard_data(Position(2))->shape(), (Dims{2, 4}));
  EXPECT_EQ(at(array, 0, 0), 0);
  EXPECT_EQ(at(array, 1, 7), 15);
  EXPECT_EQ(at(array, 3, 0), 24);
  EXPECT_TRUE(array->is_ready());
  EXPECT_TRUE(array->committed());
  EXPECT_FALSE(device_put(view_of(data, {8, 4}), named(world, {4}, {"a"}), false)->committed());
}

TEST(DevicePut, ShardsBothDimensions) {
  std::vector<float> data(32);
  std::iota(data.begin(), data.end(), 0.0f);
  const ArrayRef array = device_put(view_of(data, {8, 4}), named(make_world(2, 4), {2, 2}, {"a", "b"}), true);
  EXPECT_EQ(at(array, 0, 0), 0);
  EXPECT_EQ(at(array, 1, 0), 2);
  EXPECT_EQ(at(array, 2, 0), 16);
  EXPECT_EQ(at(array, 3, 7), 31);
}

TEST(DevicePut, JointCopiesRunTogether) {
  const auto world = make_world(1, 4);
  const auto other = make_world(1, 4);
  std::vector<float> data(32);
  std::iota(data.begin(), data.end(), 0.0f);
  JointCopies joint;
  EXPECT_TRUE(joint.empty());
  const ArrayRef rows = device_put(view_of(data, {8, 4}), named(world, {4}, {"a"}), true, nullptr, 0, &joint);
  const ArrayRef elsewhere = device_put(view_of(data, {8, 4}), named(other, {4}, {"a"}), true, nullptr, 0, &joint);
  EXPECT_EQ(at(elsewhere, 3, 0), 24);  // of another world: copied at once
  data[24] = 100;                      // not read yet
  const ArrayRef columns =
      device_put(view_of(data, {4, 8}), named(world, {2, 2}, {"a", "b"}), true, nullptr, 0, &joint);
  EXPECT_FALSE(joint.empty());
  joint.run();
  EXPECT_EQ(at(rows, 2, 7), 23);
  EXPECT_EQ(at(rows, 3, 0), 100);
  EXPECT_EQ(at(columns, 2, 4), 100);
  EXPECT_EQ(at(columns, 1, 0), 4);
}

// Everything that a user can hand in, in the way of small and of big arrays.
class DevicePutRandom : public testing::TestWithParam<int> {};

TEST_P(DevicePutRandom, RoundTripsAnyValue) {
  Random random(static_cast<uint64_t>(GetParam()));
  const auto world = make_world(static_cast<int>(test::pick(random, 1, 4)), 8);
  for (int round = 0; round < 60; ++round) {
    const ParallelFrom parallel(round % 2 ? 0 : int64_t{1} << 20);
    const Dims shape = test::random_shape(random);
    const DType dtype = test::random_dtype(random);
    const HostView source = round % 3 ? test::strided(random, shape, dtype) : test::dense(random, shape, dtype);
    const auto [sharding, text] = test::random_layout(random, world, shape, round % 4 == 0);
    SCOPED_TRACE(to_string(shape) + " " + std::string(name(dtype)) + " " + text);
    const TransferRecording recording;
    const ArrayRef array = device_put(source, sharding, true);
    test::expect_shards(array, source);
    int64_t physical = 0;
    for (int64_t b = 0; b < array->storage()->buffer_count(); ++b)
      physical += array->storage()->buffer_bytes(BufferId(b));
    EXPECT_EQ(test::bytes_of(recording), physical);

    const auto view = device_get(array);
    EXPECT_EQ(view->shape, shape);
    EXPECT_EQ(view->dtype, dtype);
    EXPECT_FALSE(view->writable);
    EXPECT_EQ(view->byte_strides, row_major_strides(shape, itemsize(dtype)));
    ASSERT_EQ(values(*view), values(source));
  }
}

INSTANTIATE_TEST_SUITE_P(seeds, DevicePutRandom, testing::Range(0, 12));

TEST(DevicePut, PlacesLargeArraysInPieces) {
  Random random(3);
  const auto world = make_world(2, 4);
  const HostView source = test::dense(random, {1024, 2560}, DType::kFloat32);
  for (const ShardingRef& sharding :
       {named(world, {4}, {"a"}), named(world, {4}, {"", "a"}), named(world, {2, 2}, {"b", "a"}), named(world, {4}, {}),
        ShardingRef(SingleDeviceSharding::make(world->device(DeviceId(3))))}) {
    const ArrayRef array = device_put(source, sharding, true);
    test::expect_shards(array, source);
    EXPECT_EQ(values(*device_get(array)), values(source)) << sharding->to_string();
  }
}

TEST(DevicePut, IgnoresLaterWritesToTheSource) {
  Random random(4);
  const auto world = make_world(1, 4);
  for (const Dims& shape : {Dims{4}, Dims{4, 16}, Dims{64, 4096}}) {
    for (const ShardingRef& sharding : {named(world, {4}, {"a"}), named(world, {4}, {}),
                                        ShardingRef(SingleDeviceSharding::make(world->device(DeviceId(0))))}) {
      const HostView source = test::dense(random, shape, DType::kInt32);
      const auto expected = values(source);
      const ArrayRef array = device_put(source, sharding, true);
      auto& memory = *static_cast<test::ByteArray*>(source.owner.get());
      for (std::byte& byte : memory) byte = ~byte;
      EXPECT_EQ(values(*device_get(array)), expected);
    }
  }
}

TEST(DevicePut, MaterializesBroadcastSources) {
  float one = 2.5f;
  HostView source;
  source.data = &one;
  source.shape = {4, 3};
  source.byte_strides = {0, 0};
  const ArrayRef array = device_put(source, named(make_world(1, 4), {4}, {"a"}), true);
  for (int64_t p = 0; p < 4; ++p) EXPECT_EQ(at(array, p, 2), 2.5f);
}

TEST(DevicePut, SharesMemoryOfReplicasAndChargesEach) {
  Random random(5);
  const auto world = make_world(1, 8);
  const int64_t before = test::arena_bytes_in_use(world);
  const ArrayRef array = device_put(test::dense(random, {1 << 20}, DType::kFloat32), named(world, {8}, {}), true);
  EXPECT_EQ(array->storage()->device_data(array->buffer_at(Position(7))),
            array->storage()->device_data(array->buffer_at(Position(0))));
  EXPECT_EQ(bytes_in_use(world), everywhere(world, 4 << 20));
  EXPECT_EQ(test::arena_bytes_in_use(world) - before, 4 << 20);
}

TEST(DevicePut, NamesTheLargestArraysOverALimit) {
  Random random(6);
  const auto world = make_world(1, 2, 1000);
  const auto sharding = named(world, {2}, {"a"});
  const ArrayRef kept = device_put(test::dense(random, {2, 150}, DType::kFloat32), sharding, true);
  const HostView source = test::dense(random, {2, 101}, DType::kFloat32);
  const TransferRecording recording;
  EXPECT_EQ(error_of<OutOfMemory>([&] { device_put(source, sharding, true); }),
            "RESOURCE_EXHAUSTED: device_put: out of memory on cpu:0: 404 bytes (404 bytes) asked for, 600 bytes (600 "
            "bytes) in use, limit 1000 bytes (1000 bytes); biggest live arrays: float32(2, 150) over 2 devices, 1.2 "
            "KiB; delete arrays that are no longer needed, raise the limit, or shard over more devices");
  EXPECT_EQ(bytes_in_use(world), everywhere(world, 600));
  EXPECT_EQ(live_arrays(world.get()).size(), 1u);
  EXPECT_EQ(test::bytes_of(recording), 0);
  kept->delete_();
  EXPECT_EQ(values(*device_get(device_put(source, sharding, true))), values(source));
}

TEST(DevicePut, RefusesSizesBeyond63Bits) {
  const auto world = make_world(1, 2);
  float one = 1;
  HostView source;
  source.data = &one;
  source.shape = {int64_t{1} << 40, int64_t{1} << 40};
  source.byte_strides = {0, 0};
  EXPECT_EQ(error_of<InvalidArgument>([&] { device_put(source, named(world, {2}, {"a"}), true); }),
            "device_put: the product of the sizes (1099511627776, 1099511627776) does not fit 63 bits; expected at "
            "most 9223372036854775807; use smaller sizes");
  source.shape = {int64_t{1} << 62, 1};
  EXPECT_EQ(error_of<InvalidArgument>([&] { device_put(source, named(world, {2}, {"a"}), true); }),
            "device_put: shape (4611686018427387904, 1) of float32 is more bytes than fit 63 bits; use smaller sizes");
  const int64_t huge = int64_t{1} << 40;
  for (const Dims& shape : {Dims{0, huge, huge}, Dims{huge, huge, 0}}) {  // whose strides do not fit
    source.shape = shape;
    source.byte_strides = {0, 0, 0};
    const std::string message = error_of<InvalidArgument>([&] { device_put(source, named(world, {2}, {"a"}), true); });
    EXPECT_EQ(message, "device_put: shape " + to_string(shape) +
                           " of float32 is more bytes than fit 63 bits, counting sizes of 0 as 1; use smaller sizes");
  }
  source.byte_strides = {0, 0};
  source.shape = {int64_t{1} << 50, 1};
  EXPECT_THROW(device_put(source, named(world, {2}, {"a"}), true), OutOfMemory);
  source.shape = {-4, 2};
  EXPECT_THROW(device_put(source, named(world, {2}, {"a"}), true), InvalidArgument);
  EXPECT_EQ(bytes_in_use(world), everywhere(world, 0));
}

TEST(DevicePut, RefusesStridesOfTheWrongLength) {
  float one = 1;
  HostView source;
  source.data = &one;
  source.shape = {1, 1};
  source.byte_strides = {4};
  EXPECT_EQ(error_of<InvalidArgument>([&] { device_put(source, named(make_world(1, 1), {1}, {}), true); }),
            "device_put: source has 1 strides for the 2 dimensions of shape (1, 1); expected one each");
}

TEST(DevicePut, ChargesNothingForIndivisibleShapes) {
  Random random(7);
  const auto world = make_world(1, 4);
  EXPECT_THROW(device_put(test::dense(random, {6}, DType::kInt8), named(world, {4}, {"a"}), true), IndivisibleError);
  EXPECT_EQ(bytes_in_use(world), everywhere(world, 0));
}

TEST(DevicePut, RefusesCompileOnlyDevices) {
  Random random(8);
  ClientOptions options;
  options.num_devices = 2;
  options.compile_only = true;
  const auto world = Client::make(Machine::from_synthetic("pack:1 [numa] core:2 pu:1"), options);
  EXPECT_THROW(device_put(test::dense(random, {2}, DType::kInt8), named(world, {2}, {"a"}), true), Unavailable);
}

TEST(DevicePut, LeavesNoArrayAndNoChargeOnInterrupt) {
  static std::atomic<int> calls_left;
  Random random(9);
  const auto world = make_world(2, 2);
  const HostView source = test::dense(random, {64, 65536}, DType::kFloat32);
  const auto sharding = named(world, {2}, {"", "a"});
  for (int calls = 0; calls < 4; ++calls) {
    calls_left = calls;
    set_interrupt_hook([] { return calls_left.fetch_sub(1) <= 0; });
    ArrayRef array;
    try {
      array = device_put(source, sharding, true);
    } catch (const Interrupted&) {
    }
    set_interrupt_hook(nullptr);
    EXPECT_TRUE(calls > 0 || !array);
    if (array) {  // the copy was over before it asked that often
      EXPECT_EQ(values(*device_get(array)), values(source));
    }
    EXPECT_EQ(bytes_in_use(world), everywhere(world, array ? 8 << 20 : 0));
    EXPECT_EQ(live_arrays(world.get()).size(), array ? 1u : 0u);
  }
}

TEST(DevicePutAlias, SharesTheMemoryOfTheSourceAndKeepsItsOwner) {
  Random random(10);
  const auto world = make_world(1, 2);
  HostView source = test::dense(random, {4, 4}, DType::kInt16);
  const std::weak_ptr<void> owner = source.owner;
  void* data = source.data;
  ArrayRef array = device_put_alias(source, named(world, {2}, {}), true);
  source.owner.reset();
  EXPECT_TRUE(array->storage()->buffer(BufferId(0)).block->is_foreign());
  EXPECT_EQ(array->storage()->device_data(BufferId(0)), data);
  EXPECT_EQ(bytes_in_use(world), everywhere(world, 32));
  auto view = device_get(array);
  EXPECT_EQ(view->data, data);
  array.reset();
  EXPECT_FALSE(owner.expired());
  view.reset();
  EXPECT_TRUE(owner.expired());
  EXPECT_EQ(bytes_in_use(world), everywhere(world, 0));
}

TEST(DevicePutAlias, ReportsAllReasonsAgainstSharing) {
  Random random(11);
  const auto world = make_world(1, 2);
  HostView source = test::dense(random, {4, 4}, DType::kInt16);
  source.byte_strides = {2, 8};
  EXPECT_EQ(error_of<InvalidArgument>([&] { device_put_alias(source, named(world, {2}, {"a"}), true); }),
            "device_put: may_alias=True cannot share the source's memory: source with strides (2, 8) for shape (4, 4) "
            "is not dense row-major, and sharding NamedSharding(mesh=Mesh('a': 2, axis_types=(Auto,)), spec=P('a',), "
            "memory_kind=device) needs 2 buffers; expected 1; leave may_alias out for a copy");
  source.byte_strides = {8, 2};
  EXPECT_THROW(device_put_alias(source, named(world, {2}, {"a"}), true), InvalidArgument);
  EXPECT_EQ(bytes_in_use(world), everywhere(world, 0));
}

TEST(DevicePutThreads, PutGetAndDeleteConcurrently) {
  const auto world = make_world(2, 4);
  const ParallelFrom parallel(4096);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Random random(t);
      for (int i = 0; i < 40; ++i) {
        const HostView source = test::dense(random, {8, test::pick(random, 1, 400)}, DType::kFloat64);
        const ArrayRef array = device_put(source, named(world, {4}, {i % 2 ? "a" : ""}), true);
        std::thread deleter([&] { array->delete_(); });
        try {
          const auto view = device_get(array);
          if (values(*view) != values(source)) ++wrong;
        } catch (const DeletedArray&) {
        }
        deleter.join();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(bytes_in_use(world), everywhere(world, 0));
  EXPECT_TRUE(live_arrays(world.get()).empty());
}

}  // namespace
}  // namespace artifex_devices
