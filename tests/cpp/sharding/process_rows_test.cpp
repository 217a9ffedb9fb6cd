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
  return Client::make(machine, {.num_devices = 2, .processes = {one, one}, .process_index = 1});
}

class ProcessRowsTest : public testing::Test {
 protected:
  ClientRef client_ = second_of_two();
  MeshRef mesh_ = mesh_of(client_, {2, 2}, {"process", "local"});

  ShardingRef sharding(std::vector<SpecEntry> entries) const {
    return NamedSharding::make(mesh_, P(std::move(entries)));
  }
};

using Counts = std::vector<std::optional<int64_t>>;

TEST_F(ProcessRowsTest, CountsThePartsOfTheProcesses) {
  EXPECT_EQ(process_counts(*sharding({on({"process"})}), 2), (Counts{2, 1}));
  EXPECT_EQ(process_counts(*sharding({on({"process", "local"})}), 1), (Counts{2}));
  EXPECT_EQ(process_counts(*sharding({on({"local"}), on({"process"})}), 2), (Counts{1, 2}));
  EXPECT_EQ(process_counts(*sharding({}), 1), (Counts{1}));
}

TEST_F(ProcessRowsTest, ReturnsNoCountForOverlappingParts) {
  const auto devices = all_devices(client_);
  const MeshRef crossed = make_mesh({4}, names({"x"}), {}, {devices[0], devices[2], devices[1], devices[3]}, "mesh");
  EXPECT_EQ(process_counts(*NamedSharding::make(crossed, P({on({"x"})})), 1), (Counts{2}));
  const MeshRef uneven = make_mesh({3}, names({"x"}), {}, {devices[0], devices[1], devices[2]}, "mesh");
  EXPECT_EQ(process_counts(*NamedSharding::make(uneven, P({on({"x"})})), 1), (Counts{std::nullopt}));
}

TEST_F(ProcessRowsTest, ReturnsTheStartsOfThisProcess) {
  using Starts = std::vector<std::vector<int64_t>>;
  EXPECT_EQ(process_starts(*sharding({on({"process", "local"})}), {8, 3}), (Starts{{4, 6}, {0}}));
}

TEST_F(ProcessRowsTest, RequiresContiguousBatchShares) {
  EXPECT_EQ(batch_share(*sharding({on({"process"})}), 64, 0), std::make_pair(int64_t{32}, int64_t{64}));
  EXPECT_EQ(batch_share(*sharding({SpecEntry(), on({"process", "local"})}), 8, 1),
            std::make_pair(int64_t{4}, int64_t{8}));
  EXPECT_EQ(batch_share(*sharding({}), 64, 3), std::make_pair(int64_t{0}, int64_t{64}));
  const auto crossed = sharding({on({"local", "process"})});
  EXPECT_EQ(message_of<InvalidArgument>([&] { batch_share(*crossed, 8, 0); }),
            "batch_share: the rows that this process holds of " + crossed->to_string() +
                " are [(2, 4), (6, 8)]; expected contiguous ones; order the mesh by process, as make_mesh and "
                "DeviceMeshManager do");
  EXPECT_THROW(batch_share(*SingleDeviceSharding::make(client_->device(0)), 8, 0), InvalidArgument);
  EXPECT_THROW(batch_share(*crossed, 8, -1), InvalidArgument);
}

}  // namespace
}  // namespace artifex_devices
