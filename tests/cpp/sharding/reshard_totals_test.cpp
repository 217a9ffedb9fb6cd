// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/sharding/reshard_totals.h"

#include <gtest/gtest.h>

#include "../array/worlds.h"
#include "artifex_devices/base/error.h"

namespace artifex_devices {
namespace {

using test::error_of;
using test::make_world;
using test::named;

TEST(ReshardTotals, CountsTheBytesThatDevicesLack) {
  const ClientRef world = make_world(1, 4);
  const ShardingRef rows = named(world, {4}, {"a"});
  const ShardingRef replicated = named(world, {4}, {});
  EXPECT_EQ(reshard_totals(*rows, *replicated, {8}, 4, "test"), (IngressTotals{96, 24, 4}));
  EXPECT_EQ(reshard_totals(*replicated, *rows, {8}, 4, "test"), IngressTotals{});
  const ShardingRef one = SingleDeviceSharding::make(world->device(DeviceId(2)));
  EXPECT_EQ(reshard_totals(*rows, *one, {8}, 4, "test"), (IngressTotals{24, 24, 1}));
}

TEST(ReshardTotals, NeedsDevicesOfOneWorld) {
  const ShardingRef rows = named(make_world(1, 4), {4}, {"a"});
  EXPECT_THROW(reshard_totals(*rows, *named(make_world(1, 4), {4}, {"a"}), {8}, 4, "test"), InvalidArgument);
  const ShardingRef abstract = NamedSharding::make_abstract(AbstractMesh({AxisName("a")}, {4}), PartitionSpec());
  EXPECT_EQ(
      error_of<InvalidArgument>([&] { reshard_totals(*rows, *abstract, {8}, 4, "reshard_bytes"); }),
      "reshard_bytes: " + abstract->to_string() +
          " is on an AbstractMesh, which has no devices; expected a sharding on a Mesh; make a Mesh of the same axes");
}

}  // namespace
}  // namespace artifex_devices
