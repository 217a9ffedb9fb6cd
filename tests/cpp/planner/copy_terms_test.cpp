// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/calibration/copy_terms.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "../base/mebibyte.h"
#include "artifex_devices/base/error.h"
#include "reference_pairs.h"

namespace artifex_devices::planner {
namespace {

/// Those that are not 0.
std::map<std::string, double> named(const CopyTerms& terms) {
  std::map<std::string, double> result;
  for (size_t i = 0; i < terms.size(); ++i) {
    if (terms[i] != 0) result.emplace(kCopyTerms[i], terms[i]);
  }
  return result;
}
using Terms = std::map<std::string, double>;

/// 4 devices: replicas on one memory are one buffer.
PlacedEnd end_of(const std::vector<std::vector<std::string>>& spec, const Dims& shape,
                 const std::vector<int64_t>& arenas = {0, 0, 0, 0}) {
  const AbstractMesh mesh({AxisName("x"), AxisName("y")}, {2, 2});
  const TileGrid grid(mesh, spec_of(spec));
  PlacedEnd end{ShardDomains(grid, shape, Uneven::kError, {.operation = "test"}), {0, 1, 2, 3}, {}, {}};
  for (const Position position : IdRange<Position>(4)) {
    const TileId tile = grid.tile(position);
    const ArenaIndex arena(arenas[static_cast<size_t>(position.number())]);
    const auto same = [&](const BufferPlace& place) { return place.tile == tile && place.arena == arena; };
    const auto found = std::ranges::find_if(end.places, same);
    end.buffers.emplace_back(found - end.places.begin());
    if (found == end.places.end()) end.places.push_back({tile, DeviceId(position.number()), arena});
  }
  return end;
}

Terms terms_of(const PlacedEnd& from, const PlacedEnd& to, int64_t cache_bytes) {
  const DirectCopies direct = make_direct_copies(from, to, 4);
  return named(copy_terms(direct, from, to, 4, {.cache_bytes = cache_bytes}));
}

TEST(CopyTerms, CountDenseCopiesBySize) {
  const CopyLimits limits{.cache_bytes = 32 * kMiB};
  EXPECT_EQ(named(dense_copy_terms(0, 4, limits)), Terms{});
  EXPECT_EQ(named(dense_copy_terms(1000, 2, limits)), (Terms{{"calls", 1}, {"copies", 2}, {"alone", 1000}}));
  EXPECT_EQ(named(dense_copy_terms(kMiB, 4, limits)),
            (Terms{{"calls on workers", 1}, {"copies", 4}, {"cached", kMiB}}));
  EXPECT_EQ(named(dense_copy_terms(16 * kMiB, 1, limits)),
            (Terms{{"calls on workers", 1}, {"copies", 1}, {"warm", 16 * kMiB}}));
  // Half way between half and twice the caches, by the logarithm.
  EXPECT_EQ(named(dense_copy_terms(32 * kMiB, 1, limits)),
            (Terms{{"calls on workers", 1}, {"copies", 1}, {"warm", 16 * kMiB}, {"memory", 16 * kMiB}}));
  EXPECT_EQ(named(dense_copy_terms(64 * kMiB, 1, limits)),
            (Terms{{"calls on workers", 1}, {"copies", 1}, {"memory", 64 * kMiB}}));
  EXPECT_EQ(named(dense_copy_terms(8 * kMiB, 1, {})),
            (Terms{{"calls on workers", 1}, {"copies", 1}, {"memory", 8 * kMiB}}));
  EXPECT_THROW(dense_copy_terms(-1, 1, {}), InvalidArgument);
  EXPECT_THROW(dense_copy_terms(1, -1, {}), InvalidArgument);
}

TEST(CopyTerms, CountReplicasOnceAndSkipReusedShards) {
  const Dims shape = {64, 64};
  EXPECT_EQ(terms_of(end_of({{"x"}, {}}, shape), end_of({{"x"}, {}}, shape), 0), Terms{});
  EXPECT_EQ(terms_of(end_of({{"x", "y"}, {}}, shape), end_of({}, shape), 0),
            (Terms{{"calls", 1}, {"copies", 4}, {"alone", 64 * 64 * 4}}));
}

TEST(CopyTerms, CountShortRunsOnTheSideThatHasThem) {
  // Rows of 128 bytes to columns of 32: each row of a source tile is cut, and dense in the destination.
  const Dims narrow = {64, 32};
  const double bytes = 64 * 32 * 4;
  const PlacedEnd rows = end_of({{"x", "y"}, {}}, narrow);
  const PlacedEnd columns = end_of({{}, {"x", "y"}}, narrow);
  EXPECT_EQ(terms_of(rows, columns, 0),
            (Terms{{"calls", 1}, {"copies", 16}, {"alone", bytes}, {"read in 32 B", bytes}}));
  EXPECT_EQ(terms_of(columns, rows, 0),
            (Terms{{"calls", 1}, {"copies", 16}, {"alone", bytes}, {"written in 32 B", bytes}}));
}

TEST(CopyTerms, CountRunsOfACacheLineOnlyForBytesFromMemory) {
  const Dims shape = {8192, 1024};  // 32 MiB; a quarter of a row has 1024 bytes, between 512 and 16384
  const double bytes = 32 * kMiB;
  const PlacedEnd rows = end_of({{"x", "y"}, {}}, shape);
  const PlacedEnd columns = end_of({{}, {"x", "y"}}, shape);
  EXPECT_EQ(terms_of(rows, columns, 64 * kMiB), (Terms{{"calls on workers", 1}, {"copies", 16}, {"warm", bytes}}));
  const Terms cold = terms_of(rows, columns, 0);
  EXPECT_EQ(cold.at("memory"), bytes);
  EXPECT_NEAR(cold.at("read in 512 B"), bytes * 15 / 31, 1);  // 1/1024 - 1/16384 of 1/512 - 1/16384
  EXPECT_EQ(cold.size(), 4U);
}

TEST(CopyTerms, CountBytesPerMemory) {
  const Dims shape = {8, 8};
  const PlacedEnd rows = end_of({{"x", "y"}, {}}, shape, {0, 0, 1, 1});
  const PlacedEnd whole = end_of({}, shape, {0, 0, 1, 1});
  const DirectCopies direct = make_direct_copies(rows, whole, 4);
  const ArenaIndex first(0);
  const ArenaIndex second(1);
  EXPECT_EQ(bytes_by_memory(direct, rows, whole),
            (std::vector<MemoryBytes>{
                {first, first, 128}, {first, second, 128}, {second, first, 128}, {second, second, 128}}));
}

}  // namespace
}  // namespace artifex_devices::planner
