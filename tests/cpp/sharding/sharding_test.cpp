// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/sharding/sharding.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "artifex_devices/base/error.h"
#include "artifex_devices/sharding/named_sharding.h"
#include "artifex_devices/sharding/single_device_sharding.h"
#include "artifex_devices/sharding/world_places.h"
#include "worlds.h"

namespace artifex_devices {
namespace {

class ShardingTest : public testing::Test {
 protected:
  ClientRef client_ = world_of(8);
  MeshRef mesh_ = mesh_of(client_, {2, 4}, {"x", "y"});
  MeshRef flat_ = mesh_of(client_, {8}, {"q"});
};

TEST_F(ShardingTest, PrintsAsJax) {
  EXPECT_EQ(NamedSharding::make(mesh_, P({on({"x"}), SpecEntry()}))->to_string(),
            "NamedSharding(mesh=Mesh('x': 2, 'y': 4, axis_types=(Auto, Auto)), spec=P('x', None), memory_kind=device)");
  EXPECT_EQ(NamedSharding::make(mesh_, P({}), MemoryKind::kPinnedHost)->to_string(),
            "NamedSharding(mesh=Mesh('x': 2, 'y': 4, axis_types=(Auto, Auto)), spec=P(), memory_kind=pinned_host)");
  EXPECT_EQ(
      NamedSharding::make(flat_, P({on({"q"})}), MemoryKind::kDevice, Uneven::kLastShort)->to_string(),
      "NamedSharding(mesh=Mesh('q': 8, axis_types=(Auto,)), spec=P('q',), memory_kind=device, uneven=last-short)");
  EXPECT_EQ(SingleDeviceSharding::make(client_->device(DeviceId(0)))->to_string(),
            "SingleDeviceSharding(device=CpuDevice(id=0), memory_kind=device)");
}

TEST_F(ShardingTest, ComparesMeshSpecKindAndPolicy) {
  const auto base = NamedSharding::make(mesh_, P({on({"x"})}));
  const auto same = NamedSharding::make(mesh_of(client_, {2, 4}, {"x", "y"}), P({SpecEntry(AxisName("x"))}));
  EXPECT_TRUE(*base == *same);
  EXPECT_EQ(base->hash(), same->hash());
  const std::vector<std::shared_ptr<const Sharding>> others = {
      NamedSharding::make(mesh_, P({on({"x"}), SpecEntry()})),
      NamedSharding::make(mesh_, P({on({"y"})})),
      NamedSharding::make(mesh_of(client_, {2, 4}, {"x", "z"}), P({on({"x"})})),
      NamedSharding::make(mesh_, P({on({"x"})}), MemoryKind::kPinnedHost),
      NamedSharding::make(mesh_, P({on({"x"})}), MemoryKind::kDevice, Uneven::kLastShort),
      SingleDeviceSharding::make(client_->device(DeviceId(0))),
  };
  for (const auto& other : others) {
    EXPECT_FALSE(*base == *other) << other->to_string();
    EXPECT_FALSE(*other == *base) << other->to_string();
    EXPECT_NE(base->hash(), other->hash()) << other->to_string();
  }
  EXPECT_TRUE(*SingleDeviceSharding::make(client_->device(DeviceId(1))) ==
              *SingleDeviceSharding::make(client_->device(DeviceId(1))));
  EXPECT_FALSE(*SingleDeviceSharding::make(client_->device(DeviceId(1))) ==
               *SingleDeviceSharding::make(client_->device(DeviceId(2))));
}

TEST_F(ShardingTest, IsEquivalentForEqualBoxesRegardlessOfNames) {
  const auto equivalent = [&](const ShardingRef& a, const ShardingRef& b, int64_t ndim) {
    EXPECT_EQ(a->is_equivalent_to(*b, ndim), b->is_equivalent_to(*a, ndim));
    return a->is_equivalent_to(*b, ndim);
  };
  const auto named = [&](const MeshRef& mesh, PartitionSpec spec, MemoryKind kind = MemoryKind::kDevice,
                         Uneven uneven = Uneven::kError) {
    return NamedSharding::make(mesh, std::move(spec), kind, uneven);
  };
  EXPECT_TRUE(equivalent(named(mesh_, P({on({"x", "y"})})), named(flat_, P({on({"q"})})), 2));
  EXPECT_FALSE(equivalent(named(mesh_, P({on({"y", "x"})})), named(flat_, P({on({"q"})})), 2));
  EXPECT_TRUE(equivalent(named(mesh_, P({on({"x"})})), named(mesh_, P({on({"x"}), SpecEntry()})), 2));
  EXPECT_TRUE(equivalent(named(mesh_, P({on({"x"})})), named(mesh_, P({on({"x"}), SpecEntry()})), 1));
  EXPECT_TRUE(equivalent(named(mesh_, P({SpecEntry::unconstrained()})), named(flat_, P({})), 1));
  EXPECT_FALSE(equivalent(named(mesh_, P({})), named(mesh_, P({}), MemoryKind::kPinnedHost), 1));

  const MeshRef types = make_mesh({8}, names({"q"}), {AxisType::kExplicit}, all_devices(client_), "make_mesh");
  EXPECT_TRUE(equivalent(named(flat_, P({on({"q"})})), named(types, P({on({"q"})})), 1));

  std::vector<Device*> reversed = all_devices(client_);
  std::ranges::reverse(reversed);
  const MeshRef back = make_mesh({8}, names({"q"}), {}, reversed, "make_mesh");
  EXPECT_FALSE(equivalent(named(flat_, P({})), named(back, P({})), 1));

  const MeshRef one = mesh_of(client_, {1, 1}, {"x", "y"});
  EXPECT_TRUE(
      equivalent(named(one, P({on({"x"}), on({"y"})})), SingleDeviceSharding::make(client_->device(DeviceId(0))), 2));

  EXPECT_FALSE(equivalent(named(flat_, P({on({"q"})})),
                          named(flat_, P({on({"q"})}), MemoryKind::kDevice, Uneven::kLastShort), 1));
  EXPECT_TRUE(equivalent(named(flat_, P({})), named(flat_, P({}), MemoryKind::kDevice, Uneven::kLastShort), 1));
}

TEST_F(ShardingTest, RefusesEquivalenceForTooLowARank) {
  const auto sharding = NamedSharding::make(mesh_, P({on({"x"}), on({"y"})}));
  EXPECT_PRED_FORMAT2(testing::IsSubstring, "is_equivalent_to: ndim is 1 but NamedSharding(",
                      message_of<InvalidArgument>([&] { (void)sharding->is_equivalent_to(*sharding, 1); }));
}

TEST_F(ShardingTest, ReturnsShardShapes) {
  const auto sharding = NamedSharding::make(mesh_, P({SpecEntry::unconstrained(), on({"x"})}));
  EXPECT_EQ(sharding->shard_shape({4, 4}), (Dims{4, 2}));
  EXPECT_EQ(sharding->num_devices(), 8);
  EXPECT_FALSE(sharding->is_fully_replicated());
  EXPECT_TRUE(sharding->is_fully_addressable());
  EXPECT_TRUE(NamedSharding::make(mesh_, P({}))->is_fully_replicated());
  EXPECT_TRUE(SingleDeviceSharding::make(client_->device(DeviceId(3)))->is_fully_replicated());
  EXPECT_EQ(SingleDeviceSharding::make(client_->device(DeviceId(3)))->shard_shape({}), (Dims{}));
  EXPECT_EQ(SingleDeviceSharding::make(client_->device(DeviceId(3)))->device(), client_->device(DeviceId(3)));
}

TEST_F(ShardingTest, ChangesOnlyTheMemoryKind) {
  const auto sharding = NamedSharding::make(mesh_, P({on({"x"})}), MemoryKind::kDevice, Uneven::kLastShort);
  const ShardingRef pinned = sharding->with_memory_kind(MemoryKind::kPinnedHost);
  EXPECT_EQ(pinned->memory_kind(), MemoryKind::kPinnedHost);
  EXPECT_EQ(pinned->uneven(), Uneven::kLastShort);
  EXPECT_TRUE(*pinned->with_memory_kind(MemoryKind::kDevice) == *sharding);
  const auto single = SingleDeviceSharding::make(client_->device(DeviceId(2)));
  EXPECT_EQ(single->with_memory_kind(MemoryKind::kUnpinnedHost)->to_string(),
            "SingleDeviceSharding(device=CpuDevice(id=2), memory_kind=unpinned_host)");
}

TEST_F(ShardingTest, NamesOperationSpecAndMeshInErrors) {
  const auto sharding = NamedSharding::make(mesh_, P({on({"x"}), on({"y"})}));
  EXPECT_EQ(
      message_of<IndivisibleError>([&] { (void)sharding->domains({3, 5}, "device_put"); }),
      "device_put: dimension 0 of size 3 is split into 2 parts by mesh axis 'x', dimension 1 of size 5 is split into "
      "4 parts by mesh axis 'y', which does not divide; expected sizes that are multiples of the parts, got "
      "shape (3, 5) with P('x', 'y') on Mesh('x': 2, 'y': 4); pad dimension 0 to 4, dimension 1 to 8, shard over "
      "other mesh axes, or use uneven=\"last-short\"");
  EXPECT_PRED_FORMAT2(testing::IsSubstring,
                      "shard_shape: the sharding with P('x', 'y') on Mesh('x': 2, 'y': 4) is only valid for values of "
                      "rank at least 2, but was applied to a value of rank 1",
                      message_of<InvalidArgument>([&] { (void)sharding->shard_shape({4}); }));
}

TEST_F(ShardingTest, AcceptsUnevenShapesWithLastShort) {
  const auto sharding = NamedSharding::make(flat_, P({on({"q"})}), MemoryKind::kDevice, Uneven::kLastShort);
  const ShardDomains domains = sharding->domains({10}, "device_put");
  EXPECT_EQ(domains.shard_shape(), (Dims{2}));
  EXPECT_EQ(domains.domain(TileId(4)).shape, (Dims{2}));
  EXPECT_EQ(domains.domain(TileId(7)).shape, (Dims{0}));
}

TEST_F(ShardingTest, RefusesInvalidSpecsAndMeshes) {
  EXPECT_THROW(NamedSharding::make(mesh_, P({on({"x"}), on({"x"})})), DuplicateSpecError);
  EXPECT_PRED_FORMAT2(testing::IsSubstring, "NamedSharding: P('z',) names axes that are not in the mesh: 'z'",
                      message_of<InvalidArgument>([&] { NamedSharding::make(mesh_, P({on({"z"})})); }));
  EXPECT_EQ(message_of<InvalidArgument>([&] { NamedSharding::make(Mesh::make_empty(), P({})); }),
            "NamedSharding: the mesh has no devices; expected at least one, got Mesh(); make a mesh with devices, such "
            "as make_mesh((8,), ('data',))");
  EXPECT_THROW(NamedSharding::make(nullptr, P({})), InvalidArgument);
  EXPECT_THROW(SingleDeviceSharding::make(nullptr), InvalidArgument);
}

std::vector<int64_t> buffers_of(const Sharding& sharding) {
  std::vector<int64_t> numbers;
  for (const Position p : sharding.positions()) numbers.push_back(sharding.buffer_at(p).number());
  return numbers;
}

TEST_F(ShardingTest, UsesABufferForEachTileInOneArena) {
  const auto sharding = NamedSharding::make(mesh_, P({on({"y"})}));
  EXPECT_EQ(sharding->buffers().size(), 4);
  EXPECT_EQ(buffers_of(*sharding), (std::vector<int64_t>{0, 1, 2, 3, 0, 1, 2, 3}));
  EXPECT_EQ(sharding->position_of(BufferId(2)), Position(2));
  const auto turned = NamedSharding::make(mesh_, P({on({"y", "x"})}));
  EXPECT_EQ(buffers_of(*turned), (std::vector<int64_t>{0, 2, 4, 6, 1, 3, 5, 7}));
  EXPECT_EQ(turned->position_of(BufferId(1)), Position(4));
}

TEST(BufferMap, SharesBuffersWithinArenasAndNumbersThemByFirstPosition) {
  const ClientRef client = world_of(8, 2);  // devices 0-3 on the first node, 4-7 on the second
  const MeshRef mesh = mesh_of(client, {2, 4}, {"x", "y"});

  const auto replicated = NamedSharding::make(mesh, P({}));
  EXPECT_EQ(replicated->buffers().size(), 2);
  EXPECT_EQ(buffers_of(*replicated), (std::vector<int64_t>{0, 0, 0, 0, 1, 1, 1, 1}));
  EXPECT_EQ(replicated->position_of(BufferId(1)), Position(4));

  const auto columns = NamedSharding::make(mesh, P({on({"y"})}));
  EXPECT_EQ(buffers_of(*columns), (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7}));

  const auto rows = NamedSharding::make(mesh, P({on({"x"})}));
  EXPECT_EQ(buffers_of(*rows), (std::vector<int64_t>{0, 0, 0, 0, 1, 1, 1, 1}));

  std::vector<std::string> places;
  for (const BufferPlace& place : WorldPlaces(*columns).places) {
    places.push_back(
        fmt::format("tile {} device {} arena {}", place.tile.number(), place.device.number(), place.arena.number()));
  }
  EXPECT_EQ(places,
            (std::vector<std::string>{"tile 0 device 0 arena 0", "tile 1 device 1 arena 0", "tile 2 device 2 arena 0",
                                      "tile 3 device 3 arena 0", "tile 0 device 4 arena 1", "tile 1 device 5 arena 1",
                                      "tile 2 device 6 arena 1", "tile 3 device 7 arena 1"}));
}

TEST(BufferMap, MapsEveryPositionToItsTileAndArena) {
  std::mt19937 random(7);
  const auto draw = [&](int64_t first, int64_t last) {
    return std::uniform_int_distribution<int64_t>(first, last)(random);
  };
  for (int round = 0; round < 60; ++round) {
    const Dims sizes{draw(1, 3), draw(1, 3), draw(1, 3)};
    const int64_t size = sizes[0] * sizes[1] * sizes[2];
    const ClientRef client = world_of(size, static_cast<int>(draw(1, 4)));
    std::vector<Device*> devices = all_devices(client);
    std::ranges::shuffle(devices, random);
    const MeshRef mesh = make_mesh(sizes, names({"a", "b", "c"}), {}, devices, "make_mesh");
    std::vector<SpecEntry> entries;
    for (const char* axis : {"a", "b", "c"}) entries.push_back(draw(0, 1) == 0 ? SpecEntry() : on({axis}));
    const auto sharding = NamedSharding::make(mesh, P(entries));
    const TileGrid& grid = sharding->grid();
    const std::vector<BufferPlace> places = WorldPlaces(*sharding).places.values();
    ASSERT_EQ(static_cast<int64_t>(places.size()), sharding->buffers().size());
    std::vector<int64_t> first(places.size(), -1);
    for (int64_t p = 0; p < size; ++p) {
      const auto buffer = static_cast<size_t>(sharding->buffer_at(Position(p)).number());
      ASSERT_LT(buffer, places.size());
      ASSERT_EQ(places[buffer].tile, grid.tile(Position(p)));
      ASSERT_EQ(places[buffer].arena, devices[static_cast<size_t>(p)]->arena_index());
      if (first[buffer] < 0) {
        first[buffer] = p;
        ASSERT_EQ(places[buffer].device, devices[static_cast<size_t>(p)]->id());
        ASSERT_EQ(sharding->position_of(BufferId(static_cast<int64_t>(buffer))), Position(p));
      }
    }
    ASSERT_EQ(std::ranges::count(first, -1), 0);
  }
}

TEST(Shards, AreOneForEachBufferAndOutliveTheirSharding) {
  const ClientRef client = world_of(4, 2);  // devices 0 and 1 on the first node, 2 and 3 on the second
  auto sharding =
      NamedSharding::make(mesh_of(client, {2, 2}, {"x", "y"}), P({on({"y"})}), MemoryKind::kDevice, Uneven::kLastShort);
  const Shards shards = sharding->shards({5, 3}, "test");
  sharding.reset();
  EXPECT_EQ(shards.size(), 4);
  std::vector<std::string> texts;
  for (const Shard& shard : shards) {
    texts.push_back(fmt::format("buffer {} position {} tile {} from {} of {}", shard.buffer.number(),
                                shard.position.number(), shard.tile.number(), to_string(shard.box.origin),
                                to_string(shard.box.shape)));
  }
  EXPECT_EQ(texts, (std::vector<std::string>{"buffer 0 position 0 tile 0 from (0, 0) of (3, 3)",
                                             "buffer 1 position 1 tile 1 from (3, 0) of (2, 3)",
                                             "buffer 2 position 2 tile 0 from (0, 0) of (3, 3)",
                                             "buffer 3 position 3 tile 1 from (3, 0) of (2, 3)"}));
}

TEST_F(ShardingTest, ComputesShapesWithoutDevicesOnAnAbstractMesh) {
  const auto abstract = NamedSharding::make_abstract(mesh_->abstract_mesh(), P({on({"x"}), on({"y"})}));
  EXPECT_TRUE(abstract->is_abstract());
  EXPECT_FALSE(abstract->is_concrete());
  EXPECT_EQ(abstract->shard_shape({8, 8}), (Dims{4, 2}));
  EXPECT_EQ(abstract->num_devices(), 8);
  EXPECT_EQ(abstract->to_string(),
            "NamedSharding(mesh=AbstractMesh('x': 2, 'y': 4, axis_types=(Auto, Auto)), spec=P('x', 'y'))");
  const auto same = NamedSharding::make_abstract(mesh_->abstract_mesh(), P({on({"x"}), on({"y"})}));
  EXPECT_EQ(*abstract, *same);
  EXPECT_EQ(abstract->hash(), same->hash());
  EXPECT_TRUE(abstract->is_equivalent_to(*same, 2));
  const auto real = NamedSharding::make(mesh_, P({on({"x"}), on({"y"})}));
  EXPECT_FALSE(*abstract == *real);
  EXPECT_FALSE(abstract->is_equivalent_to(*real, 2));
  EXPECT_THROW(NamedSharding::make_abstract(AbstractMesh(), P({})), InvalidArgument);
}

TEST_F(ShardingTest, CoversTheShardingsWhoseBoxesItContains) {
  const auto of = [&](std::vector<SpecEntry> entries, Uneven uneven = Uneven::kError) {
    return NamedSharding::make(mesh_, P(std::move(entries)), MemoryKind::kDevice, uneven);
  };
  const Dims shape = {8, 8};
  EXPECT_TRUE(of({})->covers(*of({on({"x"})}), shape, "test"));
  EXPECT_FALSE(of({on({"x"})})->covers(*of({}), shape, "test"));
  EXPECT_TRUE(of({on({"x"})})->covers(*of({on({"x", "y"})}), shape, "test"));
  EXPECT_TRUE(of({on({"x"})})->covers(*of({on({"x"}), on({"y"})}), shape, "test"));
  EXPECT_FALSE(of({on({"x"})})->covers(*of({on({"y"})}), shape, "test"));
  EXPECT_FALSE(of({on({"y"})})->covers(*of({on({"x"})}), shape, "test"));
  EXPECT_FALSE(of({on({"x"})})->covers(*of({on({"y", "x"})}), shape, "test"));
  // 9 rows in chunks of 3, or of 2 by both axes: [3, 6) does not contain [6, 8).
  EXPECT_FALSE(of({on({"y"})}, Uneven::kLastShort)->covers(*of({on({"y", "x"})}, Uneven::kLastShort), {9}, "test"));
  EXPECT_TRUE(of({on({"y"})}, Uneven::kLastShort)->covers(*of({on({"y"})}, Uneven::kLastShort), {7}, "test"));
}

/// Process `process` of two with four devices each.
ClientRef one_of_two(int process) {
  const auto machine = Machine::from_synthetic("numa:1 core:4 pu:1");
  const ProcessInfo one = Client::describe(*machine, 4);
  return Client::make(machine, {.num_devices = 4, .processes = {one, one}, .process_index = ProcessIndex(process)});
}

TEST(ShardingOfProcesses, IsReadableInAllProcessesOrInNone) {
  for (const int process : {0, 1}) {
    const ClientRef client = one_of_two(process);
    const auto devices = all_devices(client);
    const auto mesh_in = [&](const std::vector<int>& order) {
      std::vector<Device*> chosen;
      for (const int id : order) chosen.push_back(devices[static_cast<size_t>(id)]);
      return make_mesh({2, static_cast<int64_t>(order.size()) / 2}, names({"x", "y"}), {}, chosen, "mesh");
    };
    const auto readable = [](const MeshRef& mesh, const std::vector<std::string>& axes) {
      return NamedSharding::make(mesh, P({on(axes)}))->buffers().has_every_tile();
    };
    const MeshRef mixed = mesh_in({0, 4, 1, 5, 2, 6, 3, 7});  // each process has devices in both rows
    EXPECT_TRUE(readable(mixed, {"x"}));
    EXPECT_FALSE(readable(mixed, {"y"}));
    const MeshRef rows = mesh_in({0, 1, 2, 3, 4, 5, 6, 7});
    EXPECT_FALSE(readable(rows, {"x"}));
    EXPECT_TRUE(readable(rows, {"y"}));
    const MeshRef ragged = mesh_in({0, 1, 2, 4});  // process 0 has both parts, process 1 has one
    EXPECT_FALSE(readable(ragged, {"x"}));
    EXPECT_FALSE(readable(ragged, {"y"}));
    EXPECT_TRUE(NamedSharding::make(ragged, P({}))->buffers().has_every_tile());
    const ShardingRef first = SingleDeviceSharding::make(devices[0]);
    EXPECT_EQ(first->buffers().has_every_tile(), process == 0);  // process 1 has no device of it
  }
}

TEST(ShardingOfProcesses, HoldsCompleteRunsWhereEachProcessHasAllOfThem) {
  for (const int process : {0, 1}) {
    const ClientRef client = one_of_two(process);
    const MeshRef mesh = mesh_of(client, {2, 4}, {"x", "y"});
    const auto complete = [&](std::vector<SpecEntry> entries, int64_t run) {
      const ShardingRef sharding = NamedSharding::make(mesh, P(std::move(entries)));
      return holds_complete_runs(sharding->grid(), *sharding->devices(), run);
    };
    EXPECT_TRUE(complete({on({"x"}), on({"y"})}, 4));
    EXPECT_FALSE(complete({on({"x"}), on({"y"})}, 8));
    EXPECT_FALSE(complete({on({"y"}), on({"x"})}, 2));
    EXPECT_TRUE(complete({on({"y"}), on({"x"})}, 1));
    EXPECT_TRUE(complete({on({"y"})}, 4));
  }
}

}  // namespace
}  // namespace artifex_devices
