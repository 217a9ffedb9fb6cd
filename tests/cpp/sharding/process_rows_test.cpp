// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/sharding/process_rows.h"

#include <gtest/gtest.h>

#include "artifex_devices/base/error.h"
#include "artifex_devices/sharding/named_sharding.h"
#include "artifex_devices/sharding/single_device_sharding.h"
#include "worlds.h"

namespace artifex_devices {
namespace {

/// Process 1 of two with two devices each.
ClientRef second_of_two() {
  const auto machine = Machine::from_synthetic("numa:1 core:4 pu:1");
  const ProcessInfo one = Client::describe(*machine, 2);
  return Client::make(machine, {.num_devices = 2, .processes = {one, one}, .process_index = ProcessIndex(1)});
}

class ProcessRowsTest : public testing::Test {
 protected:
  ClientRef client_ = second_of_two();
  MeshRef mesh_ = mesh_of(client_, {2, 2}, {"process", "local"});

  ShardingRef sharding(std::vector<SpecEntry> entries) const {
    return NamedSharding::make(mesh_, P(std::move(entries)));
  }
};

std::vector<std::optional<RowHolders>> groups_of(const ShardingRef& sharding, int64_t ndim) {
  return process_groups(*sharding, ndim, "put");
}

using Groups = std::vector<std::optional<RowHolders>>;
const ProcessIndex kFirst(0);
const ProcessIndex kSecond(1);
const RowHolders kEach = {{kFirst}, {kSecond}};
const RowHolders kTogether = {{kFirst, kSecond}};

TEST_F(ProcessRowsTest, GroupsTheProcessesByTheirParts) {
  EXPECT_EQ(groups_of(sharding({on({"process"})}), 2), (Groups{kEach, kTogether}));
  EXPECT_EQ(groups_of(sharding({on({"process", "local"})}), 1), (Groups{kEach}));
  EXPECT_EQ(groups_of(sharding({on({"local"}), on({"process"})}), 2), (Groups{kTogether, kEach}));
  EXPECT_EQ(groups_of(sharding({}), 1), (Groups{kTogether}));
}

TEST_F(ProcessRowsTest, ReturnsNoGroupsForOverlappingParts) {
  const auto devices = all_devices(client_);
  const MeshRef crossed = make_mesh({4}, names({"x"}), {}, {devices[0], devices[2], devices[1], devices[3]}, "mesh");
  EXPECT_EQ(groups_of(NamedSharding::make(crossed, P({on({"x"})})), 1), (Groups{kEach}));
  const MeshRef uneven = make_mesh({3}, names({"x"}), {}, {devices[0], devices[1], devices[2]}, "mesh");
  EXPECT_EQ(groups_of(NamedSharding::make(uneven, P({on({"x"})})), 1), (Groups{std::nullopt}));
}

TEST_F(ProcessRowsTest, ReturnsThePartsOfEveryProcess) {
  using Parts = std::map<ProcessIndex, std::vector<std::vector<Rows>>>;
  const ShardingRef rows = sharding({on({"process", "local"})});
  EXPECT_EQ(process_parts(*rows, {8, 3}, "put"),
            (Parts{{kFirst, {{{0, 2}, {2, 4}}, {{0, 3}}}}, {kSecond, {{{4, 6}, {6, 8}}, {{0, 3}}}}}));
  const ShardingRef short_rows =
      NamedSharding::make(mesh_, P({on({"process", "local"})}), MemoryKind::kDevice, Uneven::kLastShort);
  EXPECT_EQ(process_parts(*short_rows, {5}, "put"), (Parts{{kFirst, {{{0, 2}, {2, 4}}}}, {kSecond, {{{4, 5}}}}}));
  EXPECT_EQ(process_parts(*short_rows, {3}, "put"), (Parts{{kFirst, {{{0, 1}, {1, 2}}}}, {kSecond, {{{2, 3}}}}}));
  EXPECT_EQ(process_parts(*sharding({}), {}, "put"), (Parts{{kFirst, {}}, {kSecond, {}}}));
  const std::string message = message_of<IndivisibleError>([&] { process_parts(*rows, {6}, "put"); });
  EXPECT_EQ(message.substr(0, 32), "put: dimension 0 of size 6 is sp");
}

TEST_F(ProcessRowsTest, RequiresContiguousBatchShares) {
  EXPECT_EQ(batch_share(*sharding({on({"process"})}), 64, 0), std::make_pair(int64_t{32}, int64_t{64}));
  EXPECT_EQ(batch_share(*sharding({SpecEntry(), on({"process", "local"})}), 8, 1),
            std::make_pair(int64_t{4}, int64_t{8}));
  EXPECT_EQ(batch_share(*sharding({}), 64, 3), std::make_pair(int64_t{0}, int64_t{64}));
  const auto crossed = sharding({on({"local", "process"})});
  EXPECT_EQ(message_of<InvalidArgument>([&] { batch_share(*crossed, 8, 0); }),
            "batch_share: the rows that this process holds of " + crossed->to_string() +
                " are [(2, 4), (6, 8)]; expected contiguous rows; order the mesh by process, as make_mesh and "
                "DeviceMeshManager do");
  EXPECT_THROW(batch_share(*SingleDeviceSharding::make(client_->device(DeviceId(0))), 8, 0), InvalidArgument);
  EXPECT_THROW(batch_share(*crossed, 8, -1), InvalidArgument);
}

}  // namespace
}  // namespace artifex_devices
