// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "artifex_devices/base/error.h"
#include "artifex_devices/partition/reshard_plan.h"
#include "artifex_planner/reshard/sequence.h"
#include "reference_pairs.h"

namespace artifex_devices::planner {
namespace {

AbstractMesh mesh_of(const std::vector<std::string>& names, const Dims& sizes) {
  std::vector<AxisName> axes;
  for (const std::string& name : names) axes.emplace_back(name);
  return AbstractMesh(std::move(axes), sizes);
}

std::string moves_of(const ReshardSequence& sequence) {
  std::string text;
  for (const ReshardStep& step : sequence.steps) text += (text.empty() ? "" : " ") + std::string(to_string(step.move));
  return text;
}

/// What each position receives from one grid to the next.
std::vector<int64_t> received(const TileGrid& from, const TileGrid& to, const Dims& shape, int64_t itemsize) {
  const ShardDomains::Names names{.operation = "test"};
  std::vector<int64_t> positions(static_cast<size_t>(from.positions()));
  std::iota(positions.begin(), positions.end(), int64_t{0});
  return ingress_bytes(ShardDomains(from, shape, Uneven::kError, names), positions,
                       ShardDomains(to, shape, Uneven::kError, names), positions, itemsize);
}

/// What holds for every sequence, whatever the search found.
void check_laws(const ReshardSequence& sequence, const Dims& shape, int64_t itemsize, const TileGrid& source,
                const TileGrid& destination) {
  ASSERT_EQ(sequence.grids.size(), sequence.steps.size() + 1);
  EXPECT_TRUE(sequence.grids.front() == source);
  EXPECT_TRUE(sequence.grids.back() == destination);
  const int64_t whole = checked_product(shape, "test") * itemsize;
  const int64_t source_bytes = whole / source.tiles();
  const int64_t most = std::max(source_bytes, whole / destination.tiles());
  int64_t sum = 0;
  int64_t peak = source_bytes;
  for (size_t i = 0; i < sequence.steps.size(); ++i) {
    const ReshardStep& step = sequence.steps[i];
    EXPECT_EQ(step.shard_bytes, whole / sequence.grids[i].tiles());
    EXPECT_EQ(step.shard_bytes_after, whole / sequence.grids[i + 1].tiles());
    EXPECT_LE(step.shard_bytes_after, most);
    const std::vector<int64_t> in = received(sequence.grids[i], sequence.grids[i + 1], shape, itemsize);
    EXPECT_EQ(step.bytes_in, *std::ranges::max_element(in));
    sum += step.bytes_in;
    peak = std::max(peak, source_bytes + (i == 0 ? 0 : step.shard_bytes) + step.shard_bytes_after);
  }
  EXPECT_EQ(sequence.bytes_in, sum);
  EXPECT_EQ(sequence.peak_bytes, peak);
  const std::vector<int64_t> least = received(source, destination, shape, itemsize);
  EXPECT_EQ(sequence.lower_bound, *std::ranges::max_element(least));
  EXPECT_GE(sequence.bytes_in, sequence.lower_bound);
}

class OnFourByTwo : public ::testing::Test {
 protected:
  ReshardSequence plan(const std::vector<std::vector<std::string>>& from,
                       const std::vector<std::vector<std::string>>& to, const SequenceOptions& options = {}) const {
    const PartitionSpec source = spec_of(from);
    const PartitionSpec destination = spec_of(to);
    const ReshardSequence sequence = make_reshard_sequence(shape_, 4, {mesh_, source}, {mesh_, destination}, options);
    check_laws(sequence, shape_, 4, TileGrid(mesh_, source), TileGrid(mesh_, destination));
    return sequence;
  }
  AbstractMesh mesh_ = mesh_of({"x", "y"}, {4, 2});
  Dims shape_{16, 16};
};

TEST_F(OnFourByTwo, MovesAnAxisWithOneAllToAll) {
  const ReshardSequence sequence = plan({{"x"}, {}}, {{}, {"x"}});
  ASSERT_EQ(moves_of(sequence), "all_to_all");
  const ReshardStep& step = sequence.steps[0];
  EXPECT_EQ(step.group, 4);
  EXPECT_EQ(step.from_dimension, 0);
  EXPECT_EQ(step.to_dimension, 1);
  EXPECT_EQ(step.bytes_in, 192);
  EXPECT_EQ(sequence.bytes_in, 192);
  EXPECT_EQ(sequence.lower_bound, 192);
  EXPECT_EQ(sequence.peak_bytes, 512);
  EXPECT_TRUE(sequence.is_cheapest);
  ASSERT_EQ(sequence.axes.size(), 3);
  EXPECT_EQ(sequence.axes[0].label, "x.0");
  EXPECT_EQ(sequence.axes[1].label, "x.1");
  EXPECT_EQ(sequence.axes[2].label, "y");
  EXPECT_EQ(sequence.axes[0].position_stride, 4);
}

TEST_F(OnFourByTwo, PlansNoStepForEqualShardings) {
  const ReshardSequence sequence = plan({{"x"}, {"y"}}, {{"x"}, {"y"}});
  EXPECT_EQ(moves_of(sequence), "");
  EXPECT_EQ(sequence.bytes_in, 0);
  EXPECT_EQ(sequence.peak_bytes, 128);
}

TEST_F(OnFourByTwo, SlicesWithoutMovingBytes) {
  const ReshardSequence sequence = plan({{}, {}}, {{"x"}, {"y"}});
  EXPECT_EQ(moves_of(sequence), "slice slice");
  EXPECT_EQ(sequence.bytes_in, 0);
  EXPECT_TRUE(sequence.is_cheapest);
}

TEST_F(OnFourByTwo, SlicesBeforeMovingBytes) {
  // XLA gathers everything here: 1024 bytes per device. AxesByDimension first, an all-to-all brings 96.
  const ReshardSequence sequence = plan({{}, {"x"}}, {{"y", "x"}, {}});
  EXPECT_EQ(moves_of(sequence), "slice all_to_all");
  EXPECT_EQ(sequence.bytes_in, 96);
}

TEST_F(OnFourByTwo, GathersLast) {
  const ReshardSequence sequence = plan({{}, {"y", "x"}}, {{"x"}, {}});
  EXPECT_EQ(moves_of(sequence), "all_to_all all_gather");
  EXPECT_EQ(sequence.bytes_in, 224);
}

TEST_F(OnFourByTwo, MemoryLimitIsRespectedOrThrows) {
  const std::vector<std::vector<std::string>> from{{}, {"y", "x"}};
  const std::vector<std::vector<std::string>> to{{"x"}, {}};
  EXPECT_EQ(plan(from, to).peak_bytes, 128 + 128 + 256);
  EXPECT_EQ(plan(from, to, {.memory_limit = 512}).bytes_in, 224);
  try {
    plan(from, to, {.memory_limit = 511});
    FAIL() << "no error";
  } catch (const InvalidArgument& error) {
    EXPECT_STREQ(
        error.what(),
        "plan_reshard: memory_limit is 511 bytes; expected enough for a sequence of collectives on each device: 512 "
        "bytes for the sequence that moves least, including 128 of the source's shard; raise the limit or use more "
        "devices");
  }
}

TEST(ReshardSequence, ConnectsDifferentMeshesOverTheSameDevices) {
  const AbstractMesh line = mesh_of({"all"}, {8});
  const AbstractMesh grid = mesh_of({"x", "y"}, {2, 4});
  const PartitionSpec rows = spec_of({{"all"}, {}});
  const PartitionSpec both = spec_of({{"x"}, {"y"}});
  const ReshardSequence sequence = make_reshard_sequence({16, 16}, 4, {line, rows}, {grid, both});
  EXPECT_EQ(moves_of(sequence), "all_to_all");
  EXPECT_EQ(sequence.steps[0].group, 4);
  EXPECT_EQ(sequence.bytes_in, 96);
  check_laws(sequence, {16, 16}, 4, TileGrid(line, rows), TileGrid(grid, both));
  EXPECT_EQ(sequence.axes[2].label, "all.2");
}

TEST(ReshardSequence, HandlesAxesOfDifferentPrimes) {
  const AbstractMesh mesh = mesh_of({"x", "y"}, {6, 6});
  const PartitionSpec from = spec_of({{"x"}, {}, {"y"}});
  const PartitionSpec to = spec_of({{}, {"x", "y"}, {}});
  const ReshardSequence sequence = make_reshard_sequence({36, 36, 36}, 1, {mesh, from}, {mesh, to});
  check_laws(sequence, {36, 36, 36}, 1, TileGrid(mesh, from), TileGrid(mesh, to));
  // Each device has 1296 bytes and keeps 36 of them.
  EXPECT_EQ(sequence.lower_bound, 1260);
  EXPECT_EQ(moves_of(sequence), "all_to_all all_to_all");
  EXPECT_EQ(sequence.bytes_in, 2160);
}

TEST(ReshardSequence, RefusesUnreachableShardings) {
  const AbstractMesh two_three = mesh_of({"x", "y"}, {2, 3});
  const AbstractMesh three_two = mesh_of({"x", "y"}, {3, 2});
  const AbstractMesh four = mesh_of({"x"}, {4});
  const PartitionSpec x = spec_of({{"x"}});
  EXPECT_THROW(make_reshard_sequence({12}, 4, {two_three, x}, {three_two, x}), InvalidArgument);
  EXPECT_THROW(make_reshard_sequence({12}, 4, {two_three, x}, {four, x}), InvalidArgument);
  EXPECT_THROW(make_reshard_sequence({7}, 4, {four, x}, {four, x}), IndivisibleError);
  EXPECT_THROW(make_reshard_sequence({int64_t{1} << 60}, 4, {four, x}, {four, x}), InvalidArgument);
  EXPECT_THROW(make_reshard_sequence({12}, 0, {four, x}, {four, x}), InvalidArgument);
  EXPECT_THROW(make_reshard_sequence({12}, 4, {four, spec_of({{"z"}})}, {four, x}), InvalidArgument);
  EXPECT_THROW(make_reshard_sequence({12}, 4, {four, PartitionSpec({SpecEntry::unconstrained()})}, {four, x}),
               InvalidArgument);
}

TEST(ReshardSequence, SatisfiesTheInvariantsOnLargeMeshes) {
  const AbstractMesh mesh = mesh_of({"data", "fsdp", "model"}, {16, 16, 8});
  const PartitionSpec from = spec_of({{"data"}, {"fsdp", "model"}});
  const PartitionSpec to = spec_of({{"model", "fsdp"}, {}});
  const Dims shape{4096, 4096};
  const ReshardSequence sequence = make_reshard_sequence(shape, 2, {mesh, from}, {mesh, to});
  check_laws(sequence, shape, 2, TileGrid(mesh, from), TileGrid(mesh, to));
  EXPECT_LE(sequence.bytes_in, 2 * sequence.lower_bound);
  const PartitionSpec replicated = spec_of({{}, {}});
  const ReshardSequence cut = make_reshard_sequence(shape, 2, {mesh, replicated}, {mesh, from});
  EXPECT_EQ(moves_of(cut), "slice slice");
  EXPECT_EQ(make_reshard_sequence(shape, 2, {mesh, from}, {mesh, replicated}).bytes_in, 4096 * 4096 * 2 / 2048 * 2047);
}

TEST(ReshardSequence, SatisfiesTheInvariantsForRandomShardings) {
  std::mt19937 random(7);
  const auto below = [&](size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random); };
  const std::vector<AbstractMesh> meshes = {mesh_of({"a", "b"}, {4, 2}), mesh_of({"a", "b", "c"}, {2, 3, 2}),
                                            mesh_of({"a"}, {12}), mesh_of({"a", "b"}, {6, 4})};
  for (int round = 0; round < 200; ++round) {
    const AbstractMesh& mesh = meshes[below(meshes.size())];
    const auto spec = [&] {
      std::vector<std::vector<std::string>> dimensions(3);
      for (const AxisName name : mesh.axis_names()) {
        const size_t d = below(4);
        if (d < 3)
          dimensions[d].insert(
              dimensions[d].begin() + (below(2) ? 0 : static_cast<std::ptrdiff_t>(dimensions[d].size())), name.text());
      }
      return spec_of(dimensions);
    };
    const PartitionSpec from = spec();
    const PartitionSpec to = spec();
    const Dims shape{24, 48, 24};
    SCOPED_TRACE(from.to_string() + " to " + to.to_string() + " on " + mesh.to_string());
    const ReshardSequence sequence = make_reshard_sequence(shape, 2, {mesh, from}, {mesh, to});
    check_laws(sequence, shape, 2, TileGrid(mesh, from), TileGrid(mesh, to));
    const ReshardSequence bounded =
        make_reshard_sequence(shape, 2, {mesh, from}, {mesh, to}, {.memory_limit = sequence.peak_bytes});
    EXPECT_LE(bounded.peak_bytes, sequence.peak_bytes);
    EXPECT_EQ(bounded.bytes_in, sequence.bytes_in);
    for (const int64_t limit : {sequence.peak_bytes - 1, sequence.peak_bytes * 3 / 4}) {
      try {
        const ReshardSequence less = make_reshard_sequence(shape, 2, {mesh, from}, {mesh, to}, {.memory_limit = limit});
        check_laws(less, shape, 2, TileGrid(mesh, from), TileGrid(mesh, to));
        EXPECT_LE(less.peak_bytes, limit);
        EXPECT_GE(less.bytes_in, sequence.bytes_in);
      } catch (const InvalidArgument& error) {
        EXPECT_NE(std::string(error.what()).find("memory_limit is"), std::string::npos);
      }
    }
  }
}

TEST(ReshardSequence, CostsAsLittleAsTheExhaustiveSearchOfTheTable) {
  const std::vector<ReferencePair> pairs = reference_pairs();
  if (pairs.empty()) GTEST_SKIP() << "the table of reshard costs is not beside this checkout";
  const AbstractMesh mesh = mesh_of({"x", "y"}, {4, 2});
  const Dims shape{16, 16};
  int at_the_bound = 0;
  for (const ReferencePair& pair : pairs) {
    SCOPED_TRACE(pair.line);
    const ReshardSequence sequence = make_reshard_sequence(shape, 4, {mesh, pair.source}, {mesh, pair.destination});
    check_laws(sequence, shape, 4, TileGrid(mesh, pair.source), TileGrid(mesh, pair.destination));
    EXPECT_EQ(sequence.bytes_in, pair.number("collective_ingress"));
    EXPECT_TRUE(sequence.is_cheapest);
    at_the_bound += sequence.bytes_in == sequence.lower_bound;
  }
  EXPECT_EQ(pairs.size(), 121);
  EXPECT_EQ(at_the_bound, 95);
}

}  // namespace
}  // namespace artifex_devices::planner
