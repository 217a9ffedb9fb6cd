// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/partition/ingress_totals.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "artifex_devices/base/error.h"
#include "random_specs.h"

namespace artifex_devices {
namespace {

std::vector<int64_t> numbers(int64_t count) {
  std::vector<int64_t> made(static_cast<size_t>(count));
  std::iota(made.begin(), made.end(), int64_t{0});
  return made;
}

/// By the definition: element counts of each device's boxes, dimension by dimension.
IngressTotals plain_totals(const RandomSpec& from, const std::vector<int64_t>& from_devices, const RandomSpec& to,
                           const std::vector<int64_t>& to_devices, const Dims& shape, int64_t itemsize) {
  const auto begin = [&](const RandomSpec& of, int64_t d, int64_t cut) {
    const int64_t parts = plain_parts(of, d);
    return std::min(shape[d], cut * ((shape[d] + parts - 1) / parts));
  };
  IngressTotals totals;
  for (size_t i = 0; i < to_devices.size(); ++i) {
    const auto at = std::ranges::find(from_devices, to_devices[i]) - from_devices.begin();
    int64_t wanted = itemsize;
    int64_t held = at == static_cast<int64_t>(from_devices.size()) ? 0 : itemsize;
    for (int64_t d = 0; d < shape.size(); ++d) {
      const int64_t cut = plain_cut(to, static_cast<int64_t>(i), d);
      const int64_t first = begin(to, d, cut);
      const int64_t end = begin(to, d, cut + 1);
      wanted *= end - first;
      if (held == 0) continue;
      const int64_t own = plain_cut(from, at, d);
      held *= std::max<int64_t>(0, std::min(end, begin(from, d, own + 1)) - std::max(first, begin(from, d, own)));
    }
    totals.bytes += wanted - held;
    totals.most_bytes = std::max(totals.most_bytes, wanted - held);
    totals.devices += wanted > held ? 1 : 0;
  }
  return totals;
}

/// The positions of `mesh` under other axes: its sizes split, joined and left out by chance, the product the same.
AbstractMesh regrouped(std::mt19937& random, const AbstractMesh& mesh) {
  std::vector<AxisName> names;
  Dims sizes;
  for (int64_t left = mesh.size(); left > 1 || sizes.empty();) {
    std::vector<int64_t> divisors;
    for (int64_t size = 1; size <= left; ++size) {
      if (left % size == 0 && (size > 1 || left == 1)) divisors.push_back(size);
    }
    sizes.push_back(divisors[static_cast<size_t>(draw(random, 0, static_cast<int64_t>(divisors.size()) - 1))]);
    left /= sizes.back();
    names.emplace_back("other" + std::to_string(names.size()));
  }
  return AbstractMesh(std::move(names), std::move(sizes));
}

RandomSpec spec_on(std::mt19937& random, AbstractMesh mesh, int64_t max_rank) {
  RandomSpec made;
  made.mesh = std::move(mesh);
  made.spec = random_spec(random, made.mesh, max_rank);
  return made;
}

TEST(IngressTotals, MatchTheDefinitionForTheSamePositions) {
  std::mt19937 random(11);
  for (int round = 0; round < 4000; ++round) {
    const RandomSpec a = random_case(random, 96, 3);
    const RandomSpec b = spec_on(random, round % 2 == 0 ? a.mesh : regrouped(random, a.mesh), 3);
    Dims shape;
    // Often much smaller than the parts, so that last ones are short and empty; sometimes a multiple of all.
    const bool is_even = round % 3 == 0;
    for (int64_t d = 0; d < 3; ++d) {
      shape.push_back(is_even ? plain_parts(a, d) * plain_parts(b, d) * draw(random, 1, 2) : draw(random, 0, 40));
    }
    const TileGrid from(a.mesh, a.spec);
    const TileGrid to(b.mesh, b.spec);
    const std::vector<int64_t> devices = numbers(from.positions());
    const IngressTotals totals = ingress_totals(domains(from, shape), domains(to, shape), 2);
    ASSERT_EQ(totals, plain_totals(a, devices, b, devices, shape, 2))
        << describe(a) << " to " << describe(b) << " " << to_string(shape) << ": " << totals.bytes << " "
        << totals.most_bytes << " " << totals.devices;
  }
}

TEST(IngressTotals, MatchTheDefinitionForAnyDevices) {
  std::mt19937 random(12);
  for (int round = 0; round < 1000; ++round) {
    const RandomSpec a = random_case(random, 24, 2);
    const RandomSpec b = random_case(random, 24, 2);
    const Dims shape{draw(random, 0, 30), draw(random, 1, 30)};
    const TileGrid from(a.mesh, a.spec);
    const TileGrid to(b.mesh, b.spec);
    std::vector<int64_t> pool = numbers(30);
    std::ranges::shuffle(pool, random);
    const std::vector<int64_t> from_devices(pool.begin(), pool.begin() + from.positions());
    std::ranges::shuffle(pool, random);
    const std::vector<int64_t> to_devices(pool.begin(), pool.begin() + to.positions());
    ASSERT_EQ(ingress_totals(domains(from, shape), from_devices, domains(to, shape), to_devices, 4),
              plain_totals(a, from_devices, b, to_devices, shape, 4))
        << describe(a) << " to " << describe(b) << " " << to_string(shape);
  }
}

/// A mesh of n x n devices with axes x and y.
struct Square {
  explicit Square(int64_t n) : mesh({AxisName("x"), AxisName("y")}, {n, n}) {}
  TileGrid cut(std::vector<std::vector<const char*>> dimensions) const {
    std::vector<SpecEntry> entries;
    for (const auto& axes : dimensions) entries.emplace_back(std::vector<AxisName>(axes.begin(), axes.end()));
    return TileGrid(mesh, PartitionSpec(std::move(entries)));
  }
  AbstractMesh mesh;
};

TEST(IngressTotals, HandleAMillionDevices) {
  const Square square(1024);
  const int64_t n = int64_t{1} << 20;
  const Dims shape{n, n};
  const TileGrid rows = square.cut({{"x", "y"}});
  const TileGrid turned = square.cut({{"y", "x"}});
  const TileGrid blocks = square.cut({{"x"}, {"y"}});
  const TileGrid crossed = square.cut({{"y"}, {"x"}});
  const TileGrid whole = square.cut({});
  const auto totals = [&](const TileGrid& from, const TileGrid& to) {
    return ingress_totals(domains(from, shape), domains(to, shape), 4);
  };
  EXPECT_EQ(totals(rows, blocks), (IngressTotals{4 * (n * n - n * 1024), 4 * (n - 1024), n}));
  EXPECT_EQ(totals(blocks, rows), (IngressTotals{4 * (n * n - n * 1024), 4 * (n - 1024), n}));
  EXPECT_EQ(totals(rows, rows), (IngressTotals{0, 0, 0}));
  EXPECT_EQ(totals(whole, blocks), (IngressTotals{0, 0, 0}));
  // The diagonal stays where it is.
  EXPECT_EQ(totals(rows, turned), (IngressTotals{4 * (n - 1024) * n, 4 * n, n - 1024}));
  EXPECT_EQ(totals(blocks, crossed), (IngressTotals{4 * (n - 1024) * n, 4 * n, n - 1024}));
  // The last of 2^20 rows is missing: one device has none, and so has one block a row less.
  const Dims shorter{n - 1, n};
  EXPECT_EQ(ingress_totals(domains(rows, shorter), domains(blocks, shorter), 4),
            (IngressTotals{4 * ((n - 1) * n - (n - 1) * 1024), 4 * (n - 1024), n}));
}

TEST(IngressTotals, LoopOverPositionsWithoutACommonRefinement) {
  const RandomSpec a{AbstractMesh({AxisName("a"), AxisName("b")}, {2, 3}), PartitionSpec({SpecEntry({AxisName("b")})})};
  const RandomSpec b{AbstractMesh({AxisName("c"), AxisName("d")}, {3, 2}), PartitionSpec({SpecEntry({AxisName("c")})})};
  const TileGrid from(a.mesh, a.spec);
  const TileGrid to(b.mesh, b.spec);
  // Held thirds 0 1 2 0 1 2, wanted 0 0 1 1 2 2.
  EXPECT_EQ(ingress_totals(domains(from, {9}), domains(to, {9}), 1), (IngressTotals{4 * 3, 3, 4}));
}

TEST(IngressTotals, LoopOverPositionsThatAllDiffer) {
  // A prime number of elements over 2^16 parts in two orders: nearly every device has an overlap of its own.
  const Square square(256);
  const Dims shape{1000003};
  const TileGrid rows = square.cut({{"x", "y"}});
  const TileGrid few = square.cut({{"y"}});
  const IngressTotals totals = ingress_totals(domains(rows, shape), domains(few, shape), 1);
  const std::vector<int64_t> devices = numbers(1 << 16);
  EXPECT_EQ(totals, ingress_totals(domains(rows, shape), devices, domains(few, shape), devices, 1));
}

TEST(IngressTotals, RefuseInvalidArguments) {
  const Square square(1024);
  const TileGrid whole = square.cut({});
  const TileGrid rows = square.cut({{"x", "y"}});
  const Dims big{int64_t{1} << 60};
  EXPECT_THROW(ingress_totals(domains(rows, big), domains(whole, big), 4), InvalidArgument);
  EXPECT_THROW(ingress_totals(domains(rows, big), domains(whole, big), 16), InvalidArgument);
  EXPECT_THROW(ingress_totals(domains(rows, {4}), domains(whole, {5}), 4), InvalidArgument);
  EXPECT_THROW(ingress_totals(domains(rows, {4}), domains(whole, {4}), 0), InvalidArgument);
  EXPECT_THROW(ingress_totals(domains(TileGrid(), {4}), domains(whole, {4}), 4), InvalidArgument);
}

TEST(IngressTotals, NameTheOperationInErrors) {
  const Square square(8);
  const Dims big{int64_t{1} << 61};
  const TileGrid rows = square.cut({{"x", "y"}});
  const TileGrid whole = square.cut({});
  try {
    ingress_totals(domains(rows, big), domains(whole, big), 1, "plan_reshard");
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_STREQ(error.what(),
                 "plan_reshard: the bytes of all destination shards do not fit 63 bits; expected at most "
                 "9223372036854775807; use a smaller array or fewer replicas");
  }
}

}  // namespace
}  // namespace artifex_devices
