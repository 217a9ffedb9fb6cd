// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/array/array_memory.h"

#include <gtest/gtest.h>

#include "artifex_devices/base/config.h"
#include "artifex_devices/base/error.h"
#include "worlds.h"

namespace artifex_devices {
namespace {

using test::make_world;
using test::named;

ArrayRef float_array(const ShardingRef& sharding, const Dims& shape) {
  auto storage = Storage::allocate(sharding, sharding->domains(shape, "test"), DType::kFloat32, "test");
  return Array::make(shape, DType::kFloat32, sharding, std::move(storage), nullptr, true);
}

TEST(ArrayMemory, CountsABufferOfReplicasOncePerMemory) {
  const auto world = make_world(2, 4);
  const ArrayMemory memory = memory_of(*float_array(named(world, {2, 2}, {"", "b"}), {3, 8}));
  EXPECT_EQ(memory.devices, 4);
  EXPECT_EQ(memory.device_bytes_min, 48);
  EXPECT_EQ(memory.device_bytes_max, 48);
  EXPECT_EQ(memory.logical_bytes, 4 * 48);
  EXPECT_EQ(memory.buffers, 4);
  EXPECT_EQ(memory.blocks, 2);  // a slab in each memory
  EXPECT_EQ(memory.slab_stride, 0);
  EXPECT_EQ(memory.other_users, 0);
  const auto one = make_world(1, 4);
  const ArrayMemory shared = memory_of(*float_array(named(one, {2, 2}, {"", "b"}), {3, 8}));
  EXPECT_EQ(shared.buffers, 2);
  EXPECT_EQ(shared.physical_bytes, 2 * 48);
  EXPECT_EQ(shared.slab_stride, 64);
}

TEST(ArrayMemory, ReportsARangeForUnevenShards) {
  const auto world = make_world(1, 4);
  const ArrayMemory memory = memory_of(*float_array(named(world, {4}, {"a"}, Uneven::kLastShort), {5}));
  EXPECT_EQ(memory.device_bytes_min, 0);
  EXPECT_EQ(memory.device_bytes_max, 8);
  EXPECT_EQ(memory.logical_bytes, 20);
  EXPECT_EQ(memory.physical_bytes, 20);
}

TEST(ArrayMemory, CountsOtherHoldersOfABuffer) {
  const auto world = make_world(1, 4);
  const ArrayRef array = float_array(named(world, {4}, {"a"}), {4 << 16});  // a block for each shard
  EXPECT_EQ(memory_of(*array).other_users, 0);
  const BufferRef held = array->storage()->buffer(BufferId(2));
  EXPECT_EQ(memory_of(*array).other_users, 1);
  const ArrayRef shard = array->shard_data(Position(2));
  EXPECT_TRUE(memory_of(*shard).is_shard);
  EXPECT_EQ(memory_of(*shard).other_users, 1);
  EXPECT_EQ(memory_of(*shard).logical_bytes, 1 << 18);
  EXPECT_EQ(memory_of(*array->shard_data(Position(1))).other_users, 0);
}

TEST(ArrayMemory, RefusesDeletedArrays) {
  const ArrayRef array = float_array(named(make_world(1, 2), {2}, {"a"}), {2});
  array->delete_();
  EXPECT_THROW(memory_of(*array), DeletedArray);
}

TEST(CreationLine, IsKnownForArraysMadeWhileTheyAreTraced) {
  set_caller_line_source([]() -> std::optional<CallerLine> { return CallerLine{"program", 7}; });
  const ShardingRef sharding = named(make_world(1, 2), {2}, {"a"});
  const ArrayRef before = float_array(sharding, {2});
  config().trace_allocations.store(1);
  const ArrayRef traced = float_array(sharding, {2});
  config().trace_allocations.store(0);
  EXPECT_EQ(before->creation_line(), nullptr);
  ASSERT_NE(traced->creation_line(), nullptr);
  EXPECT_EQ(*traced->creation_line(), (CallerLine{"program", 7}));
  EXPECT_EQ(traced->shard_data(Position(0))->creation_line(), nullptr);
}

}  // namespace
}  // namespace artifex_devices
