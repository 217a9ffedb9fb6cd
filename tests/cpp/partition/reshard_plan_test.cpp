// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/partition/reshard_plan.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "artifex_devices/base/error.h"
#include "axes.h"
#include "random_specs.h"

namespace artifex_devices {
namespace {

AbstractMesh line(int64_t size) { return AbstractMesh({x}, {size}); }

BufferPlace place(int64_t tile, int64_t device, int64_t arena, int64_t process = 0, int32_t host = 0) {
  return {TileId(tile), DeviceId(device), ArenaIndex(arena), ProcessIndex(process), host};
}

/// One buffer for each tile in each arena; device p of the mesh has id `first_id` + p, `per_arena` devices share one.
BufferPlaces places(const TileGrid& grid, int64_t per_arena, int64_t first_id = 0) {
  BufferPlaces made;
  std::map<std::pair<TileId, ArenaIndex>, bool> seen;
  for (int64_t p = 0; p < grid.positions(); ++p) {
    const int64_t device = first_id + p;
    const ArenaIndex arena(device / per_arena);
    if (seen.emplace(std::pair(grid.tile(Position(p)), arena), true).second)
      made.push_back(place(grid.tile(Position(p)).number(), device, arena.number()));
  }
  return made;
}

std::vector<ReshardCopy> copies_of(const ReshardPlan& plan) {
  std::vector<ReshardCopy> copies;
  plan.for_each_copy([&](const ReshardCopy& copy) { copies.push_back(copy); });
  return copies;
}

std::vector<std::string> copies_text(const ReshardPlan& plan) {
  std::vector<std::string> lines;
  for (const ReshardCopy& copy : copies_of(plan)) {
    lines.push_back(fmt::format("{}->{} {}+{} {} bytes link {}", copy.source.number(), copy.destination.number(),
                                to_string(copy.box.origin), to_string(copy.box.shape), copy.bytes,
                                static_cast<int>(copy.link)));
  }
  return lines;
}

using Lines = std::vector<std::string>;
using Pairs = std::vector<std::pair<int64_t, int64_t>>;

Pairs reused_of(const ReshardPlan& plan) {
  Pairs pairs;
  for (const auto& [destination, source] : plan.reused()) pairs.emplace_back(destination.number(), source.number());
  return pairs;
}

TEST(ReshardPlan, MatchesTheExampleInTheHeader) {
  const TileGrid two(line(2), P({SpecEntry(x)}));
  const TileGrid four(line(4), P({SpecEntry(x)}));
  const ReshardPlan plan(domains(two, {8}), places(two, 4), domains(four, {8}), places(four, 4), 4);
  EXPECT_EQ(copies_text(plan), (Lines{"0->0 (0,)+(2,) 8 bytes link 0", "0->1 (2,)+(2,) 8 bytes link 1",
                                      "1->2 (4,)+(2,) 8 bytes link 1", "1->3 (6,)+(2,) 8 bytes link 1"}));
  EXPECT_TRUE(plan.reused().empty());
  EXPECT_EQ(plan.bytes_copied(), 32);
  EXPECT_EQ(plan.bytes_over(LinkKind::kSameArena), 24);
  EXPECT_EQ(plan.bytes_over(LinkKind::kOtherArena), 0);
  EXPECT_EQ(plan.bytes_reused(), 0);
  EXPECT_EQ(ingress_bytes(domains(two, {8}), {0, 1}, domains(four, {8}), {0, 1, 2, 3}, 4),
            (std::vector<int64_t>{0, 8, 8, 8}));
}

TEST(ReshardPlan, ReusesEveryBufferOfEqualShardings) {
  const TileGrid grid(line(4), P({SpecEntry(x)}));
  const ReshardPlan plan(domains(grid, {8}), places(grid, 1), domains(grid, {8}), places(grid, 1), 4);
  EXPECT_EQ(reused_of(plan), (Pairs{{0, 0}, {1, 1}, {2, 2}, {3, 3}}));
  EXPECT_TRUE(copies_of(plan).empty());
  EXPECT_EQ(plan.bytes_reused(), 32);
}

TEST(ReshardPlan, ReusesEqualBoxesOfOtherDevicesInTheSameArena) {
  const TileGrid grid(line(2), P({SpecEntry(x)}));
  // The same tiles on devices 2 and 3 of an arena of four.
  const ReshardPlan plan(domains(grid, {8}), places(grid, 4), domains(grid, {8}), places(grid, 4, 2), 4);
  EXPECT_EQ(reused_of(plan), (Pairs{{0, 0}, {1, 1}}));
  EXPECT_TRUE(copies_of(plan).empty());
}

TEST(ReshardPlan, CopiesEqualBoxesOfOtherArenas) {
  const TileGrid grid(line(2), P({SpecEntry(x)}));
  const ReshardPlan plan(domains(grid, {8}), places(grid, 2), domains(grid, {8}), places(grid, 2, 2), 4);
  EXPECT_TRUE(plan.reused().empty());
  EXPECT_EQ(copies_text(plan), (Lines{"0->0 (0,)+(4,) 16 bytes link 2", "1->1 (4,)+(4,) 16 bytes link 2"}));
  EXPECT_EQ(plan.bytes_over(LinkKind::kOtherArena), 32);
  EXPECT_EQ(plan.bytes_over(LinkKind::kSameArena), 32);
}

TEST(ReshardPlan, ReadsTheNearestReplica) {
  // Replicas on devices 0 (arena 0), 1 (arena 0), 2 (arena 1).
  const TileGrid replicated(line(3), P({}));
  const BufferPlaces from({place(0, 0, 0), place(0, 1, 0), place(0, 2, 1)});
  const TileGrid halves(line(4), P({SpecEntry(x)}));
  const BufferPlaces to({place(0, 1, 0), place(1, 2, 1), place(2, 5, 1), place(3, 6, 0)});
  const ReshardPlan plan(domains(replicated, {4}), from, domains(halves, {4}), to, 1);
  EXPECT_EQ(copies_text(plan), (Lines{"1->0 (0,)+(1,) 1 bytes link 0", "2->1 (1,)+(1,) 1 bytes link 0",
                                      "2->2 (2,)+(1,) 1 bytes link 1", "1->3 (3,)+(1,) 1 bytes link 1"}));
}

TEST(ReshardPlan, ReadsTheNearestReplicaOfManyProcesses) {
  // Replicas in processes 0 and 1 of host 0, and 2 of host 1, which has two memories.
  const TileGrid replicated(line(4), P({}));
  const BufferPlaces from({place(0, 0, 0, 0, 0), place(0, 1, 1, 1, 0), place(0, 2, 2, 2, 1), place(0, 3, 3, 2, 1)});
  const TileGrid parts(line(8), P({SpecEntry(x)}));
  const BufferPlaces to({
      place(0, 3, 3, 2, 1),  // its own device
      place(1, 5, 2, 2, 1),  // another one of its memory
      place(2, 6, 4, 2, 1),  // another memory of its process: those there take turns
      place(3, 7, 4, 2, 1),
      place(4, 8, 5, 3, 1),  // another process of its host: likewise
      place(5, 9, 6, 4, 2),  // another host: all take turns
      place(6, 10, 6, 4, 2),
      place(7, 11, 7, 5, 0),
  });
  const ReshardPlan plan(domains(replicated, {8}), from, domains(parts, {8}), to, 1);
  std::vector<std::pair<int64_t, LinkKind>> chosen;
  for (const ReshardCopy& copy : copies_of(plan)) chosen.emplace_back(copy.source.number(), copy.link);
  EXPECT_EQ(chosen, (std::vector<std::pair<int64_t, LinkKind>>{{3, LinkKind::kSameDevice},
                                                               {2, LinkKind::kSameArena},
                                                               {2, LinkKind::kOtherArena},
                                                               {3, LinkKind::kOtherArena},
                                                               {2, LinkKind::kOtherProcess},
                                                               {1, LinkKind::kOtherHost},
                                                               {2, LinkKind::kOtherHost},
                                                               {1, LinkKind::kOtherProcess}}));
  EXPECT_EQ(plan.bytes_copied(), 8);
  EXPECT_EQ(plan.bytes_over(LinkKind::kSameArena), 7);
  EXPECT_EQ(plan.bytes_over(LinkKind::kOtherArena), 6);
  EXPECT_EQ(plan.bytes_over(LinkKind::kOtherProcess), 4);
  EXPECT_EQ(plan.bytes_over(LinkKind::kOtherHost), 2);
}

TEST(ReshardPlan, AlternatesBetweenEquallyNearReplicas) {
  const TileGrid replicated(line(2), P({}));
  const BufferPlaces from({place(0, 0, 0), place(0, 1, 1)});
  const TileGrid quarters(line(4), P({SpecEntry(x)}));
  const ReshardPlan plan(domains(replicated, {4}), from, domains(quarters, {4}), places(quarters, 1, 10), 1);
  std::vector<int64_t> sources;
  for (const ReshardCopy& copy : copies_of(plan)) sources.push_back(copy.source.number());
  EXPECT_EQ(sources, (std::vector<int64_t>{0, 1, 0, 1}));
}

TEST(ReshardPlan, OrdersCopiesByDestinationThenRowMajor) {
  const TileGrid rows(line(2), P({SpecEntry(x)}));
  const TileGrid columns(line(2), P({SpecEntry(), SpecEntry(x)}));
  const ReshardPlan plan(domains(rows, {4, 6}), places(rows, 1), domains(columns, {4, 6}), places(columns, 1), 2);
  EXPECT_EQ(copies_text(plan), (Lines{"0->0 (0, 0)+(2, 3) 12 bytes link 0", "1->0 (2, 0)+(2, 3) 12 bytes link 2",
                                      "0->1 (0, 3)+(2, 3) 12 bytes link 2", "1->1 (2, 3)+(2, 3) 12 bytes link 0"}));
}

TEST(ReshardPlan, MovesNothingForEmptyArraysAndTiles) {
  const TileGrid two(line(2), P({SpecEntry(x)}));
  const TileGrid four(line(4), P({SpecEntry(x)}));
  const Dims huge_beside_zero{0, int64_t{1} << 40, int64_t{1} << 40};
  for (const Dims& shape : {Dims{0}, huge_beside_zero}) {
    const ReshardPlan plan(domains(two, shape), places(two, 1), domains(four, shape), places(four, 1), 8);
    EXPECT_TRUE(copies_of(plan).empty());
    EXPECT_TRUE(plan.reused().empty());
    EXPECT_EQ(ingress_bytes(domains(two, shape), {0, 1}, domains(four, shape), {0, 1, 2, 3}, 8),
              (std::vector<int64_t>{0, 0, 0, 0}));
  }
  // 5 in 4 parts is 2, 2, 1, 0.
  const ReshardPlan plan(domains(two, {5}), places(two, 8), domains(four, {5}), places(four, 8), 1);
  EXPECT_EQ(copies_text(plan), (Lines{"0->0 (0,)+(2,) 2 bytes link 0", "0->1 (2,)+(1,) 1 bytes link 1",
                                      "1->1 (3,)+(1,) 1 bytes link 0", "1->2 (4,)+(1,) 1 bytes link 1"}));
}

TEST(ReshardPlan, RefusesInvalidArguments) {
  const TileGrid two(line(2), P({SpecEntry(x)}));
  const auto plan = [&](const Dims& from, const Dims& to, BufferPlaces sources, int64_t itemsize) {
    return ReshardPlan(domains(two, from), sources, domains(two, to), places(two, 1, 7), itemsize);
  };
  EXPECT_THROW(plan({8}, {6}, places(two, 1), 4), InvalidArgument);
  EXPECT_THROW(plan({8}, {8}, BufferPlaces({place(0, 0, 0)}), 4),
               InvalidArgument);  // nobody holds tile 1
  EXPECT_THROW(plan({8}, {8}, BufferPlaces({place(0, 0, 0), place(2, 1, 1)}), 4),
               InvalidArgument);  // no such tile
  EXPECT_THROW(plan({8}, {8}, places(two, 1), 0), InvalidArgument);
  EXPECT_THROW(plan({int64_t{1} << 62}, {int64_t{1} << 62}, places(two, 1), 4), InvalidArgument);
  EXPECT_THROW(ingress_bytes(domains(two, {8}), {0}, domains(two, {8}), {0, 1}, 4), InvalidArgument);
}

TEST(ReshardPlan, RefusesTotalsThatOverflow) {
  const TileGrid replicated(line(2), P({}));
  const BufferPlaces from({place(0, 0, 0)});
  const BufferPlaces to({place(0, 1, 1), place(0, 2, 2)});
  const Dims shape{INT64_MAX / 2 + 1};
  EXPECT_THROW(ReshardPlan(domains(replicated, shape), from, domains(replicated, shape), to, 1), InvalidArgument);
}

bool contains(const IndexDomain& outer, const IndexDomain& inner) {
  for (int64_t d = 0; d < outer.rank(); ++d) {
    if (inner.origin[d] < outer.origin[d]) return false;
    if (inner.origin[d] + inner.shape[d] > outer.origin[d] + outer.shape[d]) return false;
  }
  return true;
}

LinkKind link_of(const BufferPlace& a, const BufferPlace& b) {
  return a.arena != b.arena     ? LinkKind::kOtherArena
         : a.device != b.device ? LinkKind::kSameArena
                                : LinkKind::kSameDevice;
}

/// Everything that the header promises, checked element by element.
void check_plan(const ShardDomains& source, const BufferPlaces& from, const ShardDomains& destination,
                const BufferPlaces& to, int64_t itemsize) {
  const ReshardPlan plan(source, from, destination, to, itemsize);
  IdVector<PlaceId, std::vector<int>> written(to.size());
  for (const PlaceId i : to.ids()) written[i].resize(destination.domain(to[i].tile).volume());
  int64_t reused = 0;
  for (const auto& [into, out_of] : plan.reused()) {
    const IndexDomain box = destination.domain(to[into].tile);
    ASSERT_EQ(box, source.domain(from[out_of].tile));
    ASSERT_NE(link_of(to[into], from[out_of]), LinkKind::kOtherArena);
    for (int& times : written[into]) ++times;
    reused += box.volume() * itemsize;
  }
  int64_t copied = 0;
  int64_t between_devices = 0;
  int64_t between_arenas = 0;
  std::pair<PlaceId, Dims> previous;
  for (const ReshardCopy& copy : copies_of(plan)) {
    const BufferPlace& target = to[copy.destination];
    const IndexDomain whole = destination.domain(target.tile);
    ASSERT_TRUE(contains(source.domain(from[copy.source].tile), copy.box));
    ASSERT_TRUE(contains(whole, copy.box));
    ASSERT_GT(copy.bytes, 0);
    ASSERT_EQ(copy.bytes, copy.box.volume() * itemsize);
    ASSERT_EQ(copy.link, link_of(from[copy.source], target));
    for (const BufferPlace& other : from) {  // no replica is nearer
      if (other.tile == from[copy.source].tile) {
        ASSERT_GE(link_of(other, target), copy.link);
      }
    }
    const std::pair<PlaceId, Dims> order{copy.destination, copy.box.origin};
    ASSERT_LT(previous, order);
    previous = order;
    Dims index = copy.box.origin;
    for (int64_t n = copy.box.volume(); n > 0; --n) {
      int64_t offset = 0;
      for (int64_t d = 0; d < index.size(); ++d) offset = offset * whole.shape[d] + index[d] - whole.origin[d];
      ++written[copy.destination].at(offset);
      for (int64_t d = index.size() - 1; d >= 0 && ++index[d] == copy.box.origin[d] + copy.box.shape[d]; --d) {
        index[d] = copy.box.origin[d];
      }
    }
    copied += copy.bytes;
    between_devices += copy.link == LinkKind::kSameDevice ? 0 : copy.bytes;
    between_arenas += copy.link == LinkKind::kOtherArena ? copy.bytes : 0;
  }
  for (const auto& buffer : written) ASSERT_TRUE(std::ranges::all_of(buffer, [](int times) { return times == 1; }));
  ASSERT_EQ(plan.bytes_reused(), reused);
  ASSERT_EQ(plan.bytes_copied(), copied);
  ASSERT_EQ(plan.bytes_over(LinkKind::kSameArena), between_devices);
  ASSERT_EQ(plan.bytes_over(LinkKind::kOtherArena), between_arenas);
}

TEST(ReshardPlan, WritesEveryElementOnceFromTheNearestReplicaForRandomShardings) {
  std::mt19937 random(4);
  for (int round = 0; round < 500; ++round) {
    const RandomSpec a = random_case(random, 24, 3);
    const RandomSpec b = random_case(random, 24, 3);
    Dims shape;
    for (int64_t d = 0; d < 3; ++d) shape.push_back(draw(random, d == 0 ? 0 : 1, 13));
    SCOPED_TRACE(describe(a) + " to " + describe(b) + " " + to_string(shape));
    const TileGrid from(a.mesh, a.spec);
    const TileGrid to(b.mesh, b.spec);
    const int64_t per_arena = draw(random, 1, 8);
    check_plan(domains(from, shape), places(from, per_arena), domains(to, shape),
               places(to, per_arena, draw(random, 0, 4)), 4);
    if (HasFatalFailure()) return;
  }
}

TEST(ReshardPlan, DeliversTheBytesThatEachDeviceLacksForRandomShardings) {
  std::mt19937 random(5);
  for (int round = 0; round < 300; ++round) {
    const RandomSpec a = random_case(random, 16, 2);
    const RandomSpec b = random_case(random, 16, 2);
    const Dims shape{draw(random, 0, 9), draw(random, 0, 9)};
    const TileGrid from(a.mesh, a.spec);
    const TileGrid to(b.mesh, b.spec);
    const int64_t shift = draw(random, 0, 3);
    std::vector<int64_t> source_devices(static_cast<size_t>(from.positions()));
    std::vector<int64_t> devices(static_cast<size_t>(to.positions()));
    std::iota(source_devices.begin(), source_devices.end(), int64_t{0});
    std::iota(devices.begin(), devices.end(), shift);
    std::ranges::shuffle(source_devices, random);
    if (round % 2 == 0) {  // ids too far apart for a table
      for (int64_t& device : source_devices) device *= 1000;
      for (int64_t& device : devices) device *= 1000;
    }
    const ShardDomains source = domains(from, shape);
    const ShardDomains destination = domains(to, shape);
    const std::vector<int64_t> ingress = ingress_bytes(source, source_devices, destination, devices, 2);
    // Each device on an arena of its own: the plan moves exactly that between devices.
    BufferPlaces source_places;
    BufferPlaces destination_places;
    for (int64_t p = 0; p < from.positions(); ++p) {
      const int64_t device = source_devices[static_cast<size_t>(p)];
      source_places.push_back({from.tile(Position(p)), DeviceId(device), ArenaIndex(device)});
    }
    for (int64_t p = 0; p < to.positions(); ++p) {
      const int64_t device = devices[static_cast<size_t>(p)];
      destination_places.push_back({to.tile(Position(p)), DeviceId(device), ArenaIndex(device)});
    }
    const ReshardPlan plan(source, source_places, destination, destination_places, 2);
    std::vector<int64_t> planned(ingress.size(), 0);
    for (const ReshardCopy& copy : copies_of(plan)) {
      if (copy.link != LinkKind::kSameDevice) planned[static_cast<size_t>(copy.destination.number())] += copy.bytes;
    }
    ASSERT_EQ(ingress, planned) << describe(a) << " to " << describe(b) << " " << to_string(shape);
  }
}

TEST(ReshardPlan, CostsTimeProportionalToItsCopies) {
  // 65,536 devices on as many arenas: all pairs would be 4 * 10^9 intersections.
  const int64_t size = int64_t{1} << 16;
  const TileGrid from(line(size), P({SpecEntry(x)}));
  const TileGrid to(line(size / 2), P({SpecEntry(x)}));
  const Dims shape{size * 2};
  const ReshardPlan plan(domains(from, shape), places(from, 1), domains(to, shape), places(to, 1), 4);
  EXPECT_EQ(copies_of(plan).size(), static_cast<size_t>(size));
  EXPECT_EQ(plan.bytes_copied(), size * 8);
  EXPECT_EQ(plan.bytes_over(LinkKind::kSameArena), (size - 1) * 8);  // device 0 keeps its first half
}

TEST(ReshardPlan, CountsTheTotalsOfAllPairsQuickly) {
  // Rows to columns over 65,536 devices of one memory: 4 * 10^9 copies.
  const int64_t size = int64_t{1} << 16;
  const TileGrid rows(line(size), P({SpecEntry(x)}));
  const TileGrid columns(line(size), P({SpecEntry(), SpecEntry(x)}));
  const ReshardPlan plan(domains(rows, {size, size}), places(rows, size), domains(columns, {size, size}),
                         places(columns, size), 4);
  EXPECT_EQ(plan.copy_count(), size * size);
  EXPECT_EQ(plan.bytes_copied(), size * size * 4);
  EXPECT_EQ(plan.bytes_over(LinkKind::kSameArena), size * (size - 1) * 4);
  EXPECT_EQ(plan.bytes_over(LinkKind::kOtherArena), 0);
  int64_t boxes = 0;
  int64_t runs = 0;
  for (ReshardRuns into(plan, PlaceId(size - 1)); into.next(); ++runs) boxes += into.run().count;
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(boxes, size);
}

TEST(ReshardPlan, ReturnsTheRunsOfARangeOfSourceTiles) {
  std::mt19937 random(6);
  for (int round = 0; round < 200; ++round) {
    const RandomSpec a = random_case(random, 24, 3);
    const RandomSpec b = random_case(random, 24, 3);
    Dims shape;
    for (int64_t d = 0; d < 3; ++d) shape.push_back(draw(random, 1, 13));
    SCOPED_TRACE(describe(a) + " to " + describe(b) + " " + to_string(shape));
    const TileGrid from(a.mesh, a.spec);
    const TileGrid to(b.mesh, b.spec);
    BufferPlaces source_places = places(from, 1);
    for (BufferPlace& place : source_places) place.process = ProcessIndex(draw(random, 0, 1));
    const ReshardPlan plan(domains(from, shape), source_places, domains(to, shape), places(to, 1, 1000), 4);
    const CutRange range = plan.cuts_of_process(ProcessIndex(1));
    for (int64_t i = 0; i < static_cast<int64_t>(plan.destination_places().size()); ++i) {
      std::vector<std::pair<TileId, Dims>> expected;
      plan.for_copies_into(PlaceId(i), [&](const ReshardCopy& copy) {
        const TileId tile = source_places[copy.source].tile;
        for (int64_t d = 0; d < from.parts().size(); ++d) {
          const int64_t cut = from.tile_coordinate(tile, d);
          if (cut < range.first[d] || cut > range.last[d]) return;
        }
        expected.emplace_back(tile, copy.box.origin);
      });
      std::vector<std::pair<TileId, Dims>> found;
      for (ReshardRuns runs(plan, PlaceId(i), &range); runs.next();) {
        Dims origin = runs.run().box.origin;
        for (int64_t k = 0; k < runs.run().count; ++k) {
          found.emplace_back(runs.run().tile + k * runs.run().tile_step, origin);
          if (k + 1 < runs.run().count) origin[runs.run().dimension] += runs.run().box.shape[runs.run().dimension];
        }
      }
      ASSERT_EQ(found, expected);
    }
  }
}

}  // namespace
}  // namespace artifex_devices
