// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/transfer/adopt.h"

#include <gtest/gtest.h>

#include "artifex_devices/base/error.h"
#include "artifex_devices/transfer/device_get.h"
#include "artifex_devices/transfer/device_put.h"
#include "host_arrays.h"

namespace artifex_devices {
namespace {

using test::error_of;
using test::make_world;
using test::named;
using test::Random;
using test::values;

TEST(Adopt, CopiesPartsAndSharesMemory) {
  Random random(1);
  const ClientRef world = make_world(1, 2);
  const ShardingRef rows = named(world, {2}, {"a"});
  const HostView copied = test::strided(random, {2, 3}, DType::kInt32);
  const HostView shared = test::dense(random, {2, 3}, DType::kInt32);
  std::vector<AdoptedPart> parts(2);
  parts[0].view = copied;
  parts[1] = {shared, {foreign_block(shared.data, shared.nbytes(), [] {}), 0}};
  const ArrayRef array = adopt({4, 3}, DType::kInt32, rows, std::move(parts), "shard_map");
  EXPECT_TRUE(array->committed());
  EXPECT_EQ(test::shard_values(array, Position(0)), values(copied));
  EXPECT_EQ(array->storage()->device_data(BufferId(1)), shared.data);
  EXPECT_EQ(test::shard_values(array, Position(1)), values(shared));
}

TEST(Adopt, TakesShortAndEmptyLastParts) {
  Random random(2);
  const ShardingRef rows = named(make_world(1, 4), {4}, {"a"}, Uneven::kLastShort);
  std::vector<AdoptedPart> parts;
  for (const int64_t size : {2, 2, 1, 0}) parts.push_back({test::dense(random, {size}, DType::kInt8)});
  const ArrayRef array = adopt({5}, DType::kInt8, rows, parts, "shard_map");
  for (int64_t p = 0; p < 4; ++p) {
    EXPECT_EQ(test::shard_values(array, Position(p)), values(parts[static_cast<size_t>(p)].view));
  }
}

TEST(Adopt, RefusesPartsThatDoNotFit) {
  Random random(3);
  const ShardingRef rows = named(make_world(1, 2), {2}, {"a"});
  const HostView part = test::dense(random, {2}, DType::kInt8);
  EXPECT_EQ(error_of<InvalidArgument>([&] { adopt({4}, DType::kInt8, rows, {{part}}, "shard_map"); }),
            "shard_map: 1 parts for a sharding with 2 distinct buffers; expected one part for each buffer");
  EXPECT_EQ(error_of<InvalidArgument>([&] { adopt({6}, DType::kInt8, rows, {{part}, {part}}, "shard_map"); }),
            "shard_map: part 0 does not fit; expected int8(3,), got int8(2,)");
  EXPECT_EQ(error_of<InvalidArgument>([&] { adopt({4}, DType::kUInt8, rows, {{part}, {part}}, "shard_map"); }),
            "shard_map: part 0 does not fit; expected uint8(2,), got int8(2,)");
}

TEST(Adopt, SharesOnlyDenseAlignedMemoryOfTheRightKind) {
  Random random(4);
  const ClientRef world = make_world(1, 1);
  const HostView host = test::dense(random, {4, 4}, DType::kFloat64);
  EXPECT_TRUE(can_adopt(host, nullptr, Arena::of_node(0, MemoryKind::kDevice)));
  EXPECT_FALSE(
      can_adopt(host, nullptr, Arena::of_node(0, MemoryKind::kPinnedHost)));  // memory of the caller is not locked
  HostView transposed = host;
  transposed.byte_strides = {8, 32};
  EXPECT_FALSE(can_adopt(transposed, nullptr, Arena::of_node(0, MemoryKind::kDevice)));
  HostView unaligned = host;
  unaligned.data = static_cast<std::byte*>(host.data) + 1;
  EXPECT_FALSE(can_adopt(unaligned, nullptr, Arena::of_node(0, MemoryKind::kDevice)));
  const ArrayRef ours = device_put(host, SingleDeviceSharding::make(world->device(DeviceId(0))), true);
  const BufferRef buffer = ours->storage()->buffer(BufferId(0));
  const auto view = device_get(ours);
  EXPECT_TRUE(can_adopt(*view, buffer.block.operator->(), Arena::of_node(0, MemoryKind::kDevice)));
  EXPECT_FALSE(can_adopt(*view, buffer.block.operator->(), Arena::of_node(0, MemoryKind::kUnpinnedHost)));
}

}  // namespace
}  // namespace artifex_devices
