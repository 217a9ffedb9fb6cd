// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/transfer/assemble.h"

#include <gtest/gtest.h>

#include <algorithm>

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

std::vector<Assembly::Part> parts_of(const ArrayRef& array) {
  std::vector<Assembly::Part> parts;
  for (const Position p : array->sharding()->positions()) parts.push_back({array->shard_data(p), "", false});
  return parts;
}

Assembly assembly_of(const ShardingRef& sharding, std::vector<Assembly::Part> parts) {
  Assembly assembly;
  assembly.operation = "test";
  assembly.sharding = sharding;
  assembly.parts = std::move(parts);
  return assembly;
}

TEST(Assemble, RebuildsAnArrayFromItsShardsWithoutACopy) {
  Random random(1);
  const HostView source = test::dense(random, {8, 6}, DType::kFloat32);
  const auto world = make_world(2, 4);
  for (const ShardingRef& sharding :
       {named(world, {4}, {"a"}), named(world, {2, 2}, {"b", "a"}), named(world, {4}, {})}) {
    const ArrayRef array = device_put(source, sharding, true);
    const auto assembled = [&](bool with_shape) {
      Assembly assembly = assembly_of(sharding, parts_of(array));
      if (with_shape) assembly.shape = source.shape;
      std::reverse(assembly.parts.begin(), assembly.parts.end());
      return assemble(std::move(assembly));
    };
    const ArrayRef whole = assembled(true);
    EXPECT_EQ(values(*device_get(whole)), values(source));
    EXPECT_EQ(whole->storage()->buffer(BufferId(0)).host_data(), array->storage()->buffer(BufferId(0)).host_data());
    EXPECT_EQ(assembled(false)->shape(), source.shape);
  }
}

TEST(Assemble, NamesEachPartThatDoesNotFit) {
  Random random(2);
  const auto world = make_world(1, 4);
  const ShardingRef sharding = named(world, {4}, {"a"});
  const ArrayRef array = device_put(test::dense(random, {8, 6}, DType::kFloat32), sharding, true);
  Assembly assembly = assembly_of(sharding, parts_of(array));
  assembly.shape = Dims{8, 6};
  assembly.parts[1].array = device_put(test::dense(random, {1, 6}, DType::kInt8),
                                       SingleDeviceSharding::make(world->device(DeviceId(1))), true);
  assembly.parts[2].array = assembly.parts[3].array;
  const std::string text = error_of<InvalidArgument>([&] { assemble(std::move(assembly)); });
  for (const char* part : {"arrays[1] has dtype int8; expected float32", "arrays[1] has shape (1, 6); expected (2, 6)",
                           "arrays[3] is on cpu:3 as arrays[2] is", "no part for cpu:2"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

TEST(Assemble, ChargesOwnPartsOnce) {
  Random random(3);
  const auto world = make_world(1, 2);
  const ShardingRef sharding = named(world, {2}, {"a"});
  Assembly assembly = assembly_of(sharding, {});
  assembly.shape = Dims{2, 64};
  for (int64_t i = 0; i < 2; ++i) {
    world->device(DeviceId(i))->set_bytes_limit(64);
    assembly.parts.push_back({device_put(test::dense(random, {64}, DType::kInt8),
                                         SingleDeviceSharding::make(world->device(DeviceId(i))), true),
                              "", true});
  }
  assembly.is_stack = true;
  const ArrayRef whole = assemble(std::move(assembly));
  EXPECT_EQ(world->device(DeviceId(0))->memory_stats().bytes_in_use, 64);
  EXPECT_EQ(whole->shape(), (Dims{2, 64}));
}

TEST(ShardWriter, WritesEachPartOnceAndComparesReplicas) {
  Random random(4);
  const auto world = make_world(1, 4);
  const ShardingRef sharding = named(world, {2, 2}, {"a"});
  const HostView source = test::dense(random, {4, 3}, DType::kInt16);
  ShardWriter writer({4, 3}, DType::kInt16, sharding, "test");
  for (int64_t p = 0; p < 4; ++p) {
    HostView part = source;
    part.shape = {2, 3};
    part.data = static_cast<std::byte*>(source.data) + (p / 2) * 12;
    EXPECT_TRUE(writer.write(Position(p), part));
  }
  HostView wrong = source;
  wrong.shape = {2, 3};
  EXPECT_FALSE(writer.write(Position(3), wrong));
  EXPECT_EQ(values(*device_get(writer.finish())), values(source));
}

TEST(DeviceGetAsync, GathersWithoutTheArray) {
  Random random(5);
  const HostView source = test::dense(random, {64, 4096}, DType::kFloat64);
  ArrayRef array = device_put(source, named(make_world(1, 4), {4}, {"", "a"}), true);
  const auto view = device_get_async(array);
  const auto again = device_get_async(array);
  EXPECT_EQ(view->data, again->data);
  array->delete_();
  array.reset();
  wait_for(view->ready);
  EXPECT_EQ(values(*view), values(source));
}

}  // namespace
}  // namespace artifex_devices
