// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/partition/shard_domains.h"

#include <gtest/gtest.h>

#include <map>

#include "artifex_devices/base/error.h"
#include "axes.h"
#include "random_specs.h"

namespace artifex_devices {
namespace {

const AxisName z("z");

AbstractMesh mesh_2x4() { return AbstractMesh({x, y}, {2, 4}); }

std::vector<int64_t> tiles_of(const TileGrid& grid) {
  std::vector<int64_t> tiles;
  for (const Position p : IdRange<Position>(grid.positions())) tiles.push_back(grid.tile(p).number());
  return tiles;
}

std::vector<int64_t> replicas_of(const TileGrid& grid, const Dims& shape) {
  const ShardDomains domains(grid, shape, Uneven::kError, {.operation = "test"});
  std::vector<int64_t> replicas;
  for (const Position p : IdRange<Position>(grid.positions())) replicas.push_back(domains.replica(p));
  return replicas;
}

IndexDomain box(Dims origin, Dims shape) { return {std::move(origin), std::move(shape)}; }

/// Domains of a grid that lives in the test.
ShardDomains cut(const TileGrid& grid, const Dims& shape, Uneven uneven = Uneven::kError) {
  return ShardDomains(grid, shape, uneven, {.operation = "shard_shape"});
}

template <class Expected>
std::string message_of(const AbstractMesh& mesh, const PartitionSpec& spec, const Dims& shape) {
  const TileGrid grid(mesh, spec);
  try {
    ShardDomains(grid, shape, Uneven::kError, {.operation = "device_put", .spec = &spec, .mesh = &mesh});
  } catch (const Expected& error) {
    return error.what();
  }
  return "no error";
}

TEST(TileGrid, MatchesTheExampleInTheHeader) {
  const TileGrid grid(mesh_2x4(), P({SpecEntry(), on({x})}));
  EXPECT_EQ(grid.positions(), 8);
  EXPECT_EQ(grid.parts(), (Dims{1, 2}));
  EXPECT_EQ(grid.parts(0), 1);
  EXPECT_EQ(grid.parts(1), 2);
  EXPECT_EQ(grid.parts(7), 1);
  EXPECT_EQ(grid.tiles(), 2);
  EXPECT_EQ(grid.replicas(), 4);
  EXPECT_EQ(grid.tile(Position(5)), TileId(1));
  EXPECT_EQ(grid.replica(Position(5)), 1);
  EXPECT_EQ(grid.position(TileId(1), 1), Position(5));
}

TEST(TileGrid, OrdersAxesOfATupleMajorToMinor) {
  EXPECT_EQ(tiles_of(TileGrid(mesh_2x4(), P({on({x, y})}))), (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(tiles_of(TileGrid(mesh_2x4(), P({on({y, x})}))), (std::vector<int64_t>{0, 2, 4, 6, 1, 3, 5, 7}));
  EXPECT_EQ(tiles_of(TileGrid(mesh_2x4(), P({on({y}), on({x})}))), (std::vector<int64_t>{0, 2, 4, 6, 1, 3, 5, 7}));
}

TEST(TileGrid, NumbersReplicasInDeviceOrder) {
  EXPECT_EQ(replicas_of(TileGrid(mesh_2x4(), P({on({y})})), {16}), (std::vector<int64_t>{0, 0, 0, 0, 1, 1, 1, 1}));
  EXPECT_EQ(replicas_of(TileGrid(mesh_2x4(), P({SpecEntry(), on({x})})), {16, 16}),
            (std::vector<int64_t>{0, 1, 2, 3, 0, 1, 2, 3}));
  EXPECT_EQ(replicas_of(TileGrid(mesh_2x4(), P({})), {16}), (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST(TileGrid, TreatsPartsOfAnEmptyDimensionAsReplicas) {
  EXPECT_EQ(replicas_of(TileGrid(mesh_2x4(), P({on({x})})), {0}), (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(replicas_of(TileGrid(mesh_2x4(), P({on({x}), on({y})})), {0, 8}),
            (std::vector<int64_t>{0, 0, 0, 0, 1, 1, 1, 1}));
  EXPECT_EQ(replicas_of(TileGrid(mesh_2x4(), P({on({x}), on({y})})), {4, 0}),
            (std::vector<int64_t>{0, 1, 2, 3, 0, 1, 2, 3}));
}

TEST(TileGrid, IsEqualWhenPositionsHoldTheSameBoxes) {
  const AbstractMesh flat({z}, {8});
  const AbstractMesh cube({x, y, z}, {2, 2, 2});
  EXPECT_EQ(TileGrid(mesh_2x4(), P({on({x, y})})), TileGrid(flat, P({on({z})})));
  EXPECT_EQ(TileGrid(mesh_2x4(), P({on({x, y})})), TileGrid(cube, P({on({x, y, z}), SpecEntry()})));
  EXPECT_EQ(TileGrid(mesh_2x4(), P({on({x})})), TileGrid(cube, P({on({x}), SpecEntry::unconstrained()})));
  EXPECT_EQ(TileGrid(mesh_2x4(), P({})), TileGrid(cube, P({SpecEntry(), SpecEntry()})));
  EXPECT_EQ(TileGrid(mesh_2x4(), P({on({y})})), TileGrid(cube, P({on({y, z})})));
  EXPECT_EQ(TileGrid(AbstractMesh({x, y}, {1, 1}), P({on({x}), on({y})})), TileGrid());
  EXPECT_EQ(TileGrid(AbstractMesh({x, y, z}, {2, 1, 4}), P({on({y, x}), on({z})})),
            TileGrid(mesh_2x4(), P({on({x}), on({y})})));
}

TEST(TileGrid, DiffersWhenBoxesOrTheirPositionsDiffer) {
  const AbstractMesh flat({z}, {8});
  EXPECT_NE(TileGrid(mesh_2x4(), P({on({y, x})})), TileGrid(flat, P({on({z})})));
  EXPECT_NE(TileGrid(mesh_2x4(), P({on({x}), on({y})})), TileGrid(flat, P({on({z})})));
  EXPECT_NE(TileGrid(mesh_2x4(), P({SpecEntry(), on({x})})), TileGrid(mesh_2x4(), P({on({x})})));
  EXPECT_NE(TileGrid(mesh_2x4(), P({})), TileGrid(AbstractMesh({x}, {4}), P({})));
}

TEST(TileGrid, AgreesWithTheDefinitionForRandomMeshesAndSpecs) {
  std::mt19937 random(1);
  for (int round = 0; round < 400; ++round) {
    const RandomSpec made = random_case(random, 48, 3);
    SCOPED_TRACE(describe(made));
    const TileGrid grid(made.mesh, made.spec);
    Dims shape;
    for (int64_t d = 0; d < 3; ++d) shape.push_back(draw(random, 0, 2) * plain_parts(made, d));
    ASSERT_EQ(grid.positions(), made.mesh.size());
    ASSERT_EQ(grid.tiles() * grid.replicas(), grid.positions());
    ASSERT_TRUE(grid.parts().empty() || grid.parts().back() > 1);
    std::map<int64_t, int64_t> seen;
    std::map<std::vector<int64_t>, int64_t> seen_boxes;
    for (int64_t p = 0; p < grid.positions(); ++p) {
      int64_t tile = 0;
      std::vector<int64_t> cuts;
      for (int64_t d = 0; d < 3; ++d) {
        const int64_t cut = plain_cut(made, p, d);
        tile = tile * plain_parts(made, d) + cut;
        cuts.push_back(shape[d] == 0 ? 0 : cut);
        ASSERT_EQ(grid.tile_coordinate(grid.tile(Position(p)), d), cut);
      }
      ASSERT_EQ(grid.tile(Position(p)), TileId(tile));
      ASSERT_EQ(grid.replica(Position(p)), seen[tile]++);
      ASSERT_EQ(cut(grid, shape).replica(Position(p)), seen_boxes[cuts]++);
      ASSERT_EQ(grid.position(grid.tile(Position(p)), grid.replica(Position(p))), Position(p));
    }
    ASSERT_EQ(static_cast<int64_t>(seen.size()), grid.tiles());
    const IdVector<Position, TileId> tiles = grid.tiles_by_position();
    for (const Position p : tiles.ids()) ASSERT_EQ(tiles[p], grid.tile(p));
  }
}

TEST(TileGrid, IsEqualForRandomSpecsExactlyWhenTilesAreEqual) {
  std::mt19937 random(2);
  int64_t equal = 0;
  for (int round = 0; round < 4000; ++round) {
    const RandomSpec a = random_case(random, 16, 2);
    const RandomSpec b = random_case(random, 16, 2);
    const TileGrid grid_a(a.mesh, a.spec);
    const TileGrid grid_b(b.mesh, b.spec);
    const bool same = grid_a.parts() == grid_b.parts() && tiles_of(grid_a) == tiles_of(grid_b);
    ASSERT_EQ(grid_a == grid_b, same) << describe(a) << " and " << describe(b);
    equal += same ? 1 : 0;
  }
  EXPECT_GT(equal, 100);  // both outcomes were seen
}

TEST(ShardDomains, ReturnsTheBoxOfEachTile) {
  const TileGrid grid(mesh_2x4(), P({on({x}), on({y})}));
  const ShardDomains of = cut(grid, {4, 8, 3});
  EXPECT_EQ(of.shard_shape(), (Dims{2, 2, 3}));
  EXPECT_TRUE(of.is_even());
  EXPECT_EQ(of.domain(TileId(0)), box({0, 0, 0}, {2, 2, 3}));
  EXPECT_EQ(of.domain(TileId(7)), box({2, 6, 0}, {2, 2, 3}));
}

TEST(ShardDomains, AcceptsEmptyDimensionsAndScalars) {
  const TileGrid grid(mesh_2x4(), P({on({x})}));
  EXPECT_EQ(cut(grid, {0, 5}).shard_shape(), (Dims{0, 5}));
  EXPECT_EQ(cut(grid, {0, 5}).domain(TileId(1)), box({0, 0}, {0, 5}));
  EXPECT_EQ(cut(TileGrid(), {}).domain(TileId(0)), box({}, {}));
  EXPECT_EQ(cut(grid, {0, 5}, Uneven::kLastShort).domain(TileId(1)), box({0, 0}, {0, 5}));
}

TEST(ShardDomains, UsesChunksOfCeilSizeWithLastShort) {
  const TileGrid grid(mesh_2x4(), P({on({y})}));
  const ShardDomains of = cut(grid, {10}, Uneven::kLastShort);
  EXPECT_FALSE(of.is_even());
  EXPECT_EQ(of.shard_shape(), (Dims{3}));
  EXPECT_EQ(of.domain(TileId(0)), box({0}, {3}));
  EXPECT_EQ(of.domain(TileId(3)), box({9}, {1}));
  const ShardDomains five = cut(grid, {5}, Uneven::kLastShort);  // 2 + 2 + 1 + 0
  EXPECT_EQ(five.domain(TileId(2)), box({4}, {1}));
  EXPECT_EQ(five.domain(TileId(3)), box({5}, {0}));
  EXPECT_TRUE(cut(grid, {8}, Uneven::kLastShort).is_even());
}

TEST(ShardDomains, CountsEqualBoxesAsReplicas) {
  const TileGrid grid(mesh_2x4(), P({on({x, y})}));
  const ShardDomains of = cut(grid, {5}, Uneven::kLastShort);  // positions 5, 6 and 7 hold [5, 5)
  EXPECT_EQ(of.replica(Position(4)), 0);
  EXPECT_EQ(of.replica(Position(5)), 0);
  EXPECT_EQ(of.replica(Position(7)), 2);
  const int64_t huge = int64_t{1} << 40;
  EXPECT_EQ(cut(grid, {0, huge, huge}).replica(Position(7)), 7);
  EXPECT_EQ(cut(grid, {8}).replica(Position(7)), 0);
}

TEST(ShardDomains, CountsReplicasOfAMillionEmptyBoxesQuickly) {
  // Comparing each position with all before it would be 5 * 10^11 boxes.
  const int64_t side = int64_t{1} << 10;
  const TileGrid grid(AbstractMesh({x, y}, {side, side}), P({on({y, x})}));
  const ShardDomains of = cut(grid, {10}, Uneven::kLastShort);  // tiles 0 to 9 have one element each
  for (int64_t p = 0, empty = 0; p < side * side; ++p) {
    ASSERT_EQ(of.replica(Position(p)), grid.tile(Position(p)).number() < 10 ? 0 : empty++) << p;
  }
}

TEST(ShardDomains, DoesNotOverflowAtTheLargestSize) {
  const TileGrid grid(AbstractMesh({x}, {int64_t{1} << 20}), P({on({x})}));
  const ShardDomains of = cut(grid, {INT64_MAX}, Uneven::kLastShort);
  const int64_t chunk = int64_t{1} << 43;
  EXPECT_EQ(of.domain(TileId((int64_t{1} << 20) - 1)), box({INT64_MAX - chunk + 1}, {chunk - 1}));
}

TEST(ShardDomains, NamesEveryIndivisibleDimensionAndTheFix) {
  EXPECT_EQ(
      message_of<IndivisibleError>(mesh_2x4(), P({on({x}), SpecEntry(), on({y})}), {3, 5, 6}),
      "device_put: dimension 0 of size 3 is split into 2 parts by mesh axis 'x', dimension 2 of size 6 is split into "
      "4 parts by mesh axis 'y', which does not divide; expected sizes that are multiples of the parts, got "
      "shape (3, 5, 6) with P('x', None, 'y') on Mesh('x': 2, 'y': 4); pad dimension 0 to 4, dimension 2 to 8, "
      "shard over other mesh axes, or use uneven=\"last-short\"");
  EXPECT_PRED_FORMAT2(testing::IsSubstring,
                      "dimension 0 of size 12 is split into 8 parts by mesh axes ('y', 'x'), which",
                      message_of<IndivisibleError>(mesh_2x4(), P({on({y, x})}), {12}));
}

TEST(ShardDomains, RefusesARankThatIsTooLow) {
  EXPECT_EQ(message_of<InvalidArgument>(mesh_2x4(), P({on({x}), SpecEntry()}), {4}),
            "device_put: the sharding with P('x', None) on Mesh('x': 2, 'y': 4) is only valid for values of rank at "
            "least 2, but was applied to a value of rank 1 (shape (4,)); drop entries of the spec, trailing None "
            "included, or add dimensions to the value");
  EXPECT_EQ(message_of<InvalidArgument>(mesh_2x4(), P({on({x})}), {4, 1}), "no error");
}

TEST(ShardDomains, RefusesNegativeAndOverflowingSizes) {
  EXPECT_PRED_FORMAT2(testing::IsSubstring, "device_put: dimension 0 of (-2,)",
                      message_of<InvalidArgument>(mesh_2x4(), P({on({x})}), {-2}));
  EXPECT_PRED_FORMAT2(testing::IsSubstring, "does not fit 63 bits",
                      message_of<InvalidArgument>(mesh_2x4(), P({}), {INT64_MAX, 2}));
}

TEST(ShardDomains, CoversRandomArraysExactlyOnce) {
  std::mt19937 random(3);
  for (int round = 0; round < 400; ++round) {
    const RandomSpec made = random_case(random, 32, 3);
    const bool even = draw(random, 0, 1) == 1;
    Dims shape;
    for (int64_t d = 0; d < 3; ++d) shape.push_back(draw(random, 0, 4) * (even ? plain_parts(made, d) : 2));
    SCOPED_TRACE(describe(made) + " " + to_string(shape));
    const TileGrid grid(made.mesh, made.spec);
    const ShardDomains of = cut(grid, shape, even ? Uneven::kError : Uneven::kLastShort);
    std::vector<int> covered(static_cast<size_t>(shape[0] * shape[1] * shape[2]), 0);
    for (int64_t tile = 0; tile < grid.tiles(); ++tile) {
      const IndexDomain of_tile = of.domain(TileId(tile));
      if (even) {
        ASSERT_EQ(of_tile.shape, of.shard_shape());
      }
      for (int64_t i = of_tile.origin[0]; i < of_tile.origin[0] + of_tile.shape[0]; ++i) {
        for (int64_t j = of_tile.origin[1]; j < of_tile.origin[1] + of_tile.shape[1]; ++j) {
          for (int64_t k = of_tile.origin[2]; k < of_tile.origin[2] + of_tile.shape[2]; ++k) {
            ++covered[static_cast<size_t>((i * shape[1] + j) * shape[2] + k)];
          }
        }
      }
    }
    ASSERT_TRUE(std::ranges::all_of(covered, [](int times) { return times == 1; }));
    std::map<std::vector<int64_t>, int64_t> seen;  // boxes
    for (int64_t p = 0; p < grid.positions(); ++p) {
      const IndexDomain held = of.domain(Position(p));
      std::vector<int64_t> key(held.origin.begin(), held.origin.end());
      key.insert(key.end(), held.shape.begin(), held.shape.end());
      ASSERT_EQ(of.replica(Position(p)), seen[key]++);
    }
  }
}

}  // namespace
}  // namespace artifex_devices
