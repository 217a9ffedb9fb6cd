// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/array/charge.h"

#include <gtest/gtest.h>

#include "artifex_devices/array/block_users.h"
#include "artifex_devices/base/error.h"
#include "worlds.h"

namespace artifex_devices {
namespace {

using namespace test;

ShardBytes bytes_of(const ShardingRef& sharding, const Dims& shape) {
  return {*sharding, sharding->domains(shape, "test"), DType::kFloat32, 0, "test"};
}

TEST(ShardBytes, AreThoseOfTheTileOrOfEachUnevenBuffer) {
  const auto world = make_world(1, 4);
  const ShardBytes even = bytes_of(named(world, {2, 2}, {"a"}), {6});
  EXPECT_TRUE(even.is_even());
  EXPECT_EQ(even.tile(), 12);
  EXPECT_EQ(even.of_buffer(BufferId(1)), 12);
  EXPECT_EQ(even.total(), 48);
  const ShardBytes uneven = bytes_of(named(world, {4}, {"a"}, Uneven::kLastShort), {5});
  EXPECT_FALSE(uneven.is_even());
  EXPECT_EQ(uneven.tile(), 8);
  EXPECT_EQ(uneven.of_buffer(BufferId(2)), 4);
  EXPECT_EQ(uneven.of_buffer(BufferId(3)), 0);
  EXPECT_EQ(uneven.total(), 20);
}

using BlockOf = IdVector<BufferId, const Block*>;

class ChargeTest : public testing::Test {
 protected:
  ClientRef world_ = make_world(1, 4);
  ShardingRef sharding_ = named(world_, {4}, {"a"});
  ShardBytes bytes_ = bytes_of(sharding_, {40});
};

TEST_F(ChargeTest, EndsWithItsObject) {
  {
    const Charge charge(*sharding_, bytes_, "test");
    EXPECT_EQ(bytes_in_use(world_), everywhere(world_, 40));
  }
  EXPECT_EQ(bytes_in_use(world_), everywhere(world_, 0));
  {
    Charge charge(*sharding_, bytes_, "test");
    charge.split();
    EXPECT_TRUE(charge.release(Position(1)));
    EXPECT_EQ(bytes_in_use(world_), (Bytes{40, 0, 40, 40}));
  }
  EXPECT_EQ(bytes_in_use(world_), everywhere(world_, 0));
}

TEST_F(ChargeTest, ChargesNothingWhereOneDeviceIsFull) {
  world_->device(DeviceId(2))->set_bytes_limit(39);
  EXPECT_THROW(Charge(*sharding_, bytes_, "test"), OutOfMemory);
  EXPECT_EQ(bytes_in_use(world_), everywhere(world_, 0));
}

TEST_F(ChargeTest, EndsAtOnceUntilItIsSplit) {
  Charge whole(*sharding_, bytes_, "test");
  EXPECT_TRUE(whole.end_unsplit());
  EXPECT_EQ(bytes_in_use(world_), everywhere(world_, 0));
  EXPECT_TRUE(whole.end_unsplit());
  whole.split();
  whole.retain(Position(0));
  EXPECT_FALSE(whole.release(Position(0)));
  Charge parts(*sharding_, bytes_, "test");
  parts.split();
  EXPECT_FALSE(parts.end_unsplit());
  EXPECT_EQ(bytes_in_use(world_), everywhere(world_, 40));
}

TEST_F(ChargeTest, EndsWithTheLastHandleOfAPosition) {
  Charge charge(*sharding_, bytes_, "test");
  charge.split();
  charge.retain(Position(0));
  EXPECT_FALSE(charge.release(Position(0)));
  EXPECT_TRUE(charge.release(Position(0)));
  EXPECT_FALSE(charge.release(Position(0)));
  charge.retain(Position(0));  // too late
  EXPECT_FALSE(charge.end(Position(0)));
  charge.retain(Position(3));
  EXPECT_TRUE(charge.end(Position(3)));
  EXPECT_EQ(bytes_in_use(world_), (Bytes{0, 40, 40, 0}));
}

TEST_F(ChargeTest, BlockUsersReserveBuffersUntilTheirBlockEnds) {
  const Charge charge(*sharding_, bytes_, "test");
  const BlockRef a = world_->device(DeviceId(0))->arena().allocate(1);
  const BlockRef b = world_->device(DeviceId(0))->arena().allocate(1);
  BlockUsers users(*sharding_, charge, BlockOf({&*a, &*b, &*a, &*b}));
  EXPECT_EQ(users.end(Position(2)), BufferId());
  EXPECT_EQ(bytes_reserved(world_), (Bytes{0, 0, 40, 0}));
  EXPECT_EQ(users.end(Position(0)), BufferId(0));
  EXPECT_EQ(users.next_in_group(BufferId(0)), BufferId(2));
  EXPECT_EQ(users.next_in_group(BufferId(2)), BufferId());
  EXPECT_EQ(bytes_reserved(world_), everywhere(world_, 0));
  EXPECT_FALSE(users.has_ended());
  EXPECT_EQ(users.end(Position(3)), BufferId());
  EXPECT_EQ(users.end(Position(1)), BufferId(1));
  EXPECT_TRUE(users.has_ended());
}

TEST_F(ChargeTest, BlockUsersCountReplicasOfABuffer) {
  const ShardingRef copies = named(world_, {2, 2}, {"b"});
  const Charge charge(*copies, bytes_of(copies, {40}), "test");
  const BlockRef a = world_->device(DeviceId(0))->arena().allocate(1);
  const BlockRef b = world_->device(DeviceId(0))->arena().allocate(1);
  BlockUsers users(*copies, charge, BlockOf({&*a, &*b}));
  EXPECT_EQ(users.end(Position(0)), BufferId());
  EXPECT_EQ(users.end(Position(2)), BufferId(0));
  EXPECT_EQ(bytes_reserved(world_), everywhere(world_, 0));
}

}  // namespace
}  // namespace artifex_devices
