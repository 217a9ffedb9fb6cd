// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/transfer/place.h"

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

/// One world of four devices, an array of random floats, and the array placed row by row.
class Place : public testing::Test {
 protected:
  ArrayRef put(const ShardingRef& sharding, bool committed = true) { return device_put(host_, sharding, committed); }
  ShardingRef on_device(int64_t id) const { return SingleDeviceSharding::make(world_->device(DeviceId(id))); }
  static TransferGuards guards(GuardLevel level) {
    TransferGuards made;
    made.levels.fill(level);
    return made;
  }

  Random random_{1};
  ClientRef world_ = make_world(2, 4);
  HostView host_ = test::dense(random_, {8, 4}, DType::kFloat32);
  ShardingRef rows_ = named(world_, {4}, {"a"});
  ShardingRef columns_ = named(world_, {4}, {"", "a"});
  ShardingRef replicated_ = named(world_, {4}, {});
};

TEST_F(Place, ReturnsASourceThatIsAlreadyPlaced) {
  const ArrayRef source = put(rows_);
  EXPECT_EQ(place(source, {}), source);
  EXPECT_EQ(place(source, {rows_, true}), source);
  EXPECT_EQ(plan_placement(*source, {rows_, true}, {}).strategy, PlacementStrategy::kUnchanged);
}

TEST_F(Place, SharesBuffersWhenOnlyCommittedChanges) {
  const ArrayRef source = put(rows_, false);
  const ArrayRef result = place(source, {rows_, true});
  EXPECT_NE(result, source);
  EXPECT_TRUE(result->committed());
  EXPECT_EQ(result->storage()->device_data(BufferId(0)), source->storage()->device_data(BufferId(0)));
}

TEST_F(Place, CopiesWhereSharingIsForbidden) {
  const ArrayRef source = put(rows_);
  const ArrayRef result = place(source, {rows_, true}, {.may_alias = false});
  EXPECT_NE(result->storage()->device_data(BufferId(0)), source->storage()->device_data(BufferId(0)));
  EXPECT_EQ(values(*device_get(result)), values(host_));
}

TEST_F(Place, ReshardsToOtherDevicesOfTheWorld) {
  const ArrayRef source = put(rows_);
  for (const ShardingRef& to : {columns_, replicated_, on_device(3)}) {
    EXPECT_EQ(plan_placement(*source, {to, true}, {}).strategy, PlacementStrategy::kReshard);
    const ArrayRef result = place(source, {to, true});
    EXPECT_EQ(result->sharding(), to);
    EXPECT_EQ(values(*device_get(result)), values(host_));
  }
}

TEST_F(Place, GoesThroughTheHostToAnotherWorld) {
  const ClientRef other = make_world(1, 2);
  const ArrayRef source = put(rows_);
  const ShardingRef to = named(other, {2}, {"a"});
  EXPECT_EQ(plan_placement(*source, {to, true}, {}).strategy, PlacementStrategy::kThroughHost);
  const ArrayRef result = place(source, {to, true}, {.donation = Donation::kNow});
  EXPECT_EQ(values(*device_get(result)), values(host_));
  EXPECT_TRUE(source->is_deleted());
}

TEST_F(Place, KeepsTheDevicesWhereOnlyTheKindOfMemoryChanges) {
  const ArrayRef source = put(rows_);
  const ArrayRef result = place(source, {.committed = true, .memory_kind = MemoryKind::kUnpinnedHost});
  EXPECT_EQ(*result->sharding(), *rows_->with_memory_kind(MemoryKind::kUnpinnedHost));
  EXPECT_EQ(values(*device_get(result)), values(host_));
}

TEST_F(Place, DeletesADonatedSourceNowOrLeavesThatToTheCaller) {
  const ArrayRef now = put(rows_);
  place(now, {columns_, true}, {.donation = Donation::kNow});
  EXPECT_TRUE(now->is_deleted());
  const ArrayRef later = put(rows_);
  EXPECT_NE(place(later, {rows_, true}, {.donation = Donation::kLater}), later);
  EXPECT_FALSE(later->is_deleted());
  EXPECT_THROW(place(now, {rows_, true}), DeletedArray);
}

TEST_F(Place, StoresAValueInTheLayoutOfTheTarget) {
  const auto column_major = std::make_shared<const Layout>(Dims{0, 1});
  const ArrayRef result = place(put(rows_), {rows_, true, column_major});
  EXPECT_EQ(result->strides({2, 4}), (Dims{4, 8}));
  EXPECT_EQ(place(host_, {on_device(0), true, column_major})->strides({8, 4}), (Dims{4, 32}));
  EXPECT_EQ(plan_placement(*result, {}, {}).strategy, PlacementStrategy::kUnchanged);  // an Array keeps its layout
  const auto cube = std::make_shared<const Layout>(Dims{2, 1, 0});
  EXPECT_EQ(error_of<InvalidArgument>([&] { place(host_, {rows_, true, cube}); }),
            "device_put: the Layout orders 3 dimensions and the value of shape (8, 4) has 2; expected a Layout of the "
            "same rank; leave the layout out for row-major");
}

TEST_F(Place, GuardsOnlyMovesOfArrays) {
  const ArrayRef source = put(rows_);
  const ArrayRef everywhere = put(replicated_);
  const PlacementOptions by_name{.guards = guards(GuardLevel::kDisallowExplicit)};
  EXPECT_EQ(error_of<TransferGuardError>([&] { place(source, {on_device(1), true}, by_name); }),
            "device_put: disallowed explicit device-to-device transfer of a (8, 4) float32 from " + rows_->to_string() +
                " to " + on_device(1)->to_string() +
                "; expected a level that allows explicit transfers, got the guard level \"disallow_explicit\"; put it "
                "under `with transfer_guard_device_to_device(\"allow\"):`");
  EXPECT_THROW(place(source, {columns_, true}, by_name), TransferGuardError);
  EXPECT_THROW(place(source, {rows_, true}, {.may_alias = false, .guards = by_name.guards}), TransferGuardError);
  EXPECT_EQ(place(source, {rows_, true}, by_name), source);
  EXPECT_TRUE(is_already_placed(*everywhere, *on_device(2)));
  EXPECT_EQ(values(*device_get(place(everywhere, {on_device(2), true}, by_name))), values(host_));
  EXPECT_FALSE(is_already_placed(*everywhere, *on_device(2)->with_memory_kind(MemoryKind::kPinnedHost)));
}

TEST_F(Place, LetsAnOperationReshardOverTheDevicesThatItWorksOn) {
  const ArrayRef source = put(rows_);
  const PlacementOptions of_operation{.is_explicit = false, .guards = guards(GuardLevel::kDisallow)};
  EXPECT_EQ(place(source, {columns_, true}, of_operation)->sharding(), columns_);
  EXPECT_THROW(place(source, {on_device(1), true}, of_operation), TransferGuardError);
}

TEST_F(Place, GuardsCopiesFromTheHost) {
  const TransferGuards refusing = guards(GuardLevel::kDisallow);
  EXPECT_EQ(error_of<TransferGuardError>(
                [&] { place(host_, {on_device(0), true}, {.is_explicit = false, .guards = refusing}); }),
            "reshard: disallowed implicit host-to-device transfer of a (8, 4) float32 from a array of the host to " +
                on_device(0)->to_string() +
                "; expected an explicit transfer, got the guard level \"disallow\"; move the data by device_put first, "
                "or put it under `with transfer_guard_host_to_device(\"allow\"):`");
  EXPECT_EQ(values(*device_get(place(host_, {rows_, true}, {.guards = refusing}))), values(host_));
  // A shape that the mesh does not divide is that error, whatever the guards refuse.
  host_.shape = {6, 4};
  EXPECT_THROW(place(host_, {rows_, true}, {.guards = guards(GuardLevel::kDisallowExplicit)}), IndivisibleError);
}

TEST_F(Place, SharesHostMemoryOnlyWithinOneBuffer) {
  const PlacementOptions share{.may_alias = true};
  EXPECT_EQ(place(host_, {on_device(0), true}, share)->storage()->device_data(BufferId(0)), host_.data);
  EXPECT_NE(place(host_, {on_device(0), true})->storage()->device_data(BufferId(0)), host_.data);
  EXPECT_TRUE(can_alias(host_, *on_device(0)));
  EXPECT_FALSE(can_alias(host_, *rows_));
  EXPECT_FALSE(can_alias(host_, *replicated_));  // two memories: two buffers
  EXPECT_FALSE(can_alias(host_, *on_device(0)->with_memory_kind(MemoryKind::kPinnedHost)));
  HostView transposed = host_;
  transposed.byte_strides = {4, 32};
  EXPECT_FALSE(can_alias(transposed, *on_device(0)));
  EXPECT_EQ(values(*device_get(place(transposed, {on_device(0), true}, share))), values(transposed));
}

TEST_F(Place, RefusesInvalidTargetsAndOptions) {
  EXPECT_EQ(error_of<InvalidArgument>([&] { place(host_, {}); }),
            "device_put: the target has no sharding; expected a sharding, because a host array is on no device");
  const ShardingRef abstract = NamedSharding::make_abstract(AbstractMesh({AxisName("a")}, {4}, {}), PartitionSpec());
  EXPECT_EQ(
      error_of<InvalidArgument>([&] { check_placeable(*abstract, "device_put"); }),
      "device_put: " + abstract->to_string() +
          " is on an AbstractMesh, which has no devices; expected a sharding on a Mesh; make a Mesh of the same axes");
  const ShardingRef open = NamedSharding::make(test::mesh_of(world_, {4}), PartitionSpec({SpecEntry::unconstrained()}));
  EXPECT_EQ(
      error_of<InvalidArgument>([&] { place(host_, {open, true}); }),
      "device_put: " + open->to_string() +
          " leaves a dimension UNCONSTRAINED; expected None or a mesh axis for each dimension; replace UNCONSTRAINED");
  EXPECT_EQ(
      error_of<InvalidArgument>(
          [&] { place(put(rows_), {rows_, true}, {.donation = Donation::kLater, .may_alias = true}); }),
      "device_put: donate and may_alias are both True; expected at most one of them, as a donated source is deleted");
}

TEST(PlaceBetweenProcesses, ExchangesGlobalArraysAndUsesTheLocalValueOtherwise) {
  const auto machine = Machine::from_synthetic("pack:2 [numa] core:2 pu:1");
  ClientOptions options;
  options.processes = {Client::describe(*machine, 2), Client::describe(*machine, 2)};
  options.num_devices = 2;
  const ClientRef client = Client::make(machine, options);
  Random random(2);
  const HostView host = test::dense(random, {8, 4}, DType::kFloat32);
  const ShardingRef rows = named(client, {4}, {"a"});
  const ShardingRef here = SingleDeviceSharding::make(client->device(DeviceId(0)));
  const auto strategy = [](const ArrayRef& source, const ShardingRef& to) {
    return plan_placement(*source, {to, true}, {}).strategy;
  };
  const ArrayRef global = device_put(host, rows, true);
  EXPECT_EQ(strategy(global, named(client, {4}, {})), PlacementStrategy::kExchange);
  EXPECT_EQ(strategy(global, here), PlacementStrategy::kExchange);
  EXPECT_EQ(strategy(device_put(host, here, true), rows), PlacementStrategy::kExchange);
  EXPECT_EQ(strategy(device_put(host, here, false), rows), PlacementStrategy::kValuePerProcess);
  // The strategy does not depend on which process asks.
  const ShardingRef there = SingleDeviceSharding::make(client->device(DeviceId(2)));
  EXPECT_EQ(strategy(device_put(host, there, false), rows), PlacementStrategy::kValuePerProcess);
  EXPECT_EQ(strategy(device_put(host, rows, false), named(client, {4}, {})), PlacementStrategy::kExchange);
  const ClientRef other = make_world(1, 1);
  EXPECT_EQ(strategy(device_put(host, SingleDeviceSharding::make(other->device(DeviceId(0))), true), rows),
            PlacementStrategy::kValuePerProcess);
  EXPECT_EQ(strategy(device_put(host, here, true), SingleDeviceSharding::make(client->device(DeviceId(1)))),
            PlacementStrategy::kReshard);
  EXPECT_THROW(place(global, {here, true}), NotAddressable);
}

}  // namespace
}  // namespace artifex_devices
