// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/transfer/reinterpret.h"

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

TEST(Reinterpret, ShowsTheSameMemoryInAnotherShape) {
  Random random(1);
  const ShardingRef rows = named(make_world(1, 4), {4}, {"a"});
  const HostView host = test::dense(random, {8, 4}, DType::kFloat32);
  const ArrayRef source = device_put(host, rows, true);
  const ArrayRef array = reinterpret(source, {8, 2, 2}, rows, "reshape");
  EXPECT_EQ(array->shape(), (Dims{8, 2, 2}));
  EXPECT_EQ(array->storage()->device_data(BufferId(0)), source->storage()->device_data(BufferId(0)));
  EXPECT_EQ(values(*device_get(array)), values(host));
}

TEST(Reinterpret, PutsAColumnMajorSourceInOrderFirst) {
  Random random(2);
  const ShardingRef one = SingleDeviceSharding::make(make_world(1, 1)->device(DeviceId(0)));
  const HostView host = test::dense(random, {4, 2}, DType::kInt16);
  const auto column_major = std::make_shared<const Layout>(Dims{0, 1});
  const ArrayRef array = reinterpret(device_put(host, one, true, column_major), {8}, one, "reshape");
  EXPECT_EQ(values(*device_get(array)), values(host));
}

TEST(Reinterpret, RefusesOtherNumbersOfElementsAndOtherDevices) {
  Random random(3);
  const ClientRef world = make_world(1, 4);
  const ShardingRef rows = named(world, {4}, {"a"});
  const ArrayRef source = device_put(test::dense(random, {8, 4}, DType::kFloat32), rows, true);
  EXPECT_EQ(error_of<InvalidArgument>([&] { reinterpret(source, {8, 2}, rows, "reshape"); }),
            "reshape: the shard at position 0 has 8 elements in shape (8, 4) and 4 in shape (8, 2); expected the same "
            "number");
  EXPECT_EQ(error_of<InvalidArgument>([&] { reinterpret(source, {8, 4}, named(world, {2}, {"a"}), "reshape"); }),
            "reshape: a shape of the same memory needs the same devices; expected 4 devices, got 2");
  source->delete_();
  EXPECT_THROW(reinterpret(source, {8, 4}, rows, "reshape"), DeletedArray);
}

}  // namespace
}  // namespace artifex_devices
