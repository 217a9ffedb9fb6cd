// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/partition/spec_algebra.h"

#include <gtest/gtest.h>

#include "artifex_devices/base/error.h"
#include "axes.h"

namespace artifex_devices {
namespace {

const AxisName one("one");

const AbstractMesh kAuto({x, y, one}, {2, 4, 1});
const AbstractMesh kExplicit({x, y, one}, {2, 4, 1}, {AxisType::kExplicit, AxisType::kExplicit, AxisType::kAuto});
const AbstractMesh kRow({x, y}, {1, 4}, {AxisType::kExplicit, AxisType::kExplicit});
const AbstractMesh kAutoRow({x, y}, {1, 4});

PartitionSpec spec(std::vector<std::vector<AxisName>> entries) {
  std::vector<SpecEntry> made;
  for (std::vector<AxisName>& axes : entries) made.emplace_back(std::move(axes));
  return PartitionSpec(std::move(made));
}

SpecOperand operand(Dims shape, PartitionSpec of, int64_t nbytes = 0) {
  return SpecOperand{.shape = std::move(shape), .spec = std::move(of), .nbytes = nbytes};
}

template <class Function>
std::string error_of(Function function) {
  try {
    function();
  } catch (const ShardingTypeError& error) {
    return error.what();
  }
  return "no error";
}

TEST(SpecAlgebra, AxesOfSizeOneCountAsAllOthers) {
  EXPECT_EQ(sharded_axes(spec({{one, x}, {}, {one}}), 4), (ShardedAxes{{one, x}, {}, {one}, {}}));
  EXPECT_EQ(sharded_axes(spec({{x}, {y}}), 1), (ShardedAxes{{x}}));
  EXPECT_EQ(to_partition_spec({{x}, {}, {}}), spec({{x}}));
  EXPECT_EQ(to_partition_spec({{}, {y, x}}), spec({{}, {y, x}}));
}

TEST(SpecAlgebra, ExplicitAxesAreFoundByTheirType) {
  EXPECT_TRUE(any_explicit(kExplicit, {one, y}));
  EXPECT_FALSE(any_explicit(kExplicit, {one}));
  EXPECT_FALSE(any_explicit(kAuto, {x, y}));
}

TEST(SpecAlgebra, BroadcastTakesTheFirstOperandThatShardsADimension) {
  EXPECT_EQ(broadcast_specs("add", kAuto, {8, 8}, {operand({8}, spec({{y}})), operand({8, 8}, spec({{x}, {x}}))}),
            (ShardedAxes{{x}, {y}}));
  EXPECT_EQ(broadcast_specs("add", kAuto, {8, 8}, {operand({8, 8}, spec({{x}})), operand({8, 8}, spec({{y}}))}),
            (ShardedAxes{{x}, {}}));
  EXPECT_EQ(broadcast_specs("add", kAuto, {8, 8}, {operand({1, 8}, spec({{}, {x}})), operand({8, 8}, spec({{x}}))}),
            (ShardedAxes{{}, {x}}));
}

TEST(SpecAlgebra, BroadcastIgnoresOperandsOfOtherMeshes) {
  SpecOperand other = operand({8}, spec({{x}}));
  other.is_on_mesh = false;
  EXPECT_EQ(broadcast_specs("add", kAuto, {8}, {other, operand({8}, spec({{y}}))}), (ShardedAxes{{y}}));
}

TEST(SpecAlgebra, BroadcastRefusesToChangeExplicitAxes) {
  const std::vector<SpecOperand> operands{operand({8, 8}, spec({{x}})), operand({8, 8}, spec({{y}}))};
  EXPECT_EQ(error_of([&] { broadcast_specs("add", kExplicit, {8, 8}, operands); }),
            "add: dimension 0 of the result would be sharded over ('x',) and over ('y',) at once; expected operands "
            "that agree on Explicit axes, got (8, 8) with P('x',) and (8, 8) with P('y',); move one first: "
            "ad.reshard(y, x.sharding)");
}

TEST(SpecAlgebra, ContractionKeepsTheAxesOfTheLargestOperand) {
  // (i, k) times (k, j): labels i = 0, j = 1, k = 2.
  const auto contracted = [](const PartitionSpec& left, const PartitionSpec& right, int64_t right_bytes) {
    return contract_specs("matmul", kAuto, {operand({8, 8}, left, 256), operand({8, 8}, right, right_bytes)},
                          {{0, 2}, {2, 1}}, {8, 8, 8}, 2);
  };
  EXPECT_EQ(contracted(spec({{x}}), spec({{}, {y}}), 256), (ShardedAxes{{x}, {y}, {}}));
  EXPECT_EQ(contracted(spec({{}, {x}}), spec({{y}}), 256), (ShardedAxes{{}, {}, {x}}));
  EXPECT_EQ(contracted(spec({{}, {x}}), spec({{y}}), 1024), (ShardedAxes{{}, {}, {y}}));
  EXPECT_EQ(contracted(spec({{x}}), spec({{}, {x}}), 256), (ShardedAxes{{x}, {}, {}}));
}

TEST(SpecAlgebra, ContractionReportsEveryConflictOfExplicitAxes) {
  const std::vector<SpecOperand> operands{operand({8, 8}, spec({{x}, {y}})), operand({8, 8}, spec({{x}, {x}}))};
  EXPECT_EQ(error_of([&] { contract_specs("matmul", kExplicit, operands, {{0, 2}, {2, 1}}, {8, 8, 8}, 2); }),
            "matmul: the operands disagree about Explicit axes: ('x',) would shard dimension 0 of the result and "
            "dimension 1 of the result; a dimension that is summed over is sharded over ('x',) and over ('y',); "
            "expected each dimension sharded in one way and each axis in one dimension of the result, got (8, 8) with "
            "P('x', 'y') and (8, 8) with P('x', 'x'); replicate one first: ad.reshard(y, "
            "ad.NamedSharding(y.sharding.mesh, ad.P()))");
}

TEST(SpecAlgebra, ReshapeMovesAxesToTheDimensionsThatReplaceTheirs) {
  const auto reshaped = [](std::vector<std::vector<AxisName>> entries, const Dims& from, const Dims& to) {
    return reshape_spec(kAuto, Uneven::kError, spec(std::move(entries)), from, to);
  };
  EXPECT_EQ(reshaped({{x}}, {8, 6}, {48}), (ShardedAxes{{x}}));
  EXPECT_EQ(reshaped({{x}}, {8, 6}, {2, 4, 6}), (ShardedAxes{{x}, {}, {}}));
  EXPECT_EQ(reshaped({{x, y}}, {8, 6}, {2, 4, 6}), (ShardedAxes{{x}, {y}, {}}));
  EXPECT_EQ(reshaped({{}, {}, {y}}, {2, 3, 4}, {6, 1, 4}), (ShardedAxes{{}, {}, {y}}));
  EXPECT_EQ(reshaped({{x}}, {2, 0}, {2, 0, 3}), (ShardedAxes{{x}, {}, {}}));
  EXPECT_EQ(reshaped({}, {2, 3}, {6}), (ShardedAxes{{}}));
}

TEST(SpecAlgebra, OperandsKeepAndDisagreeOnAxesOfSizeOne) {
  EXPECT_EQ(broadcast_specs("add", kRow, {8, 8}, {operand({8, 8}, spec({{x}})), operand({8}, spec({{y}}))}),
            (ShardedAxes{{x}, {y}}));
  EXPECT_NE(error_of([] { broadcast_specs("add", kRow, {8}, {operand({8}, spec({{x}})), operand({8}, spec({{y}}))}); }),
            "no error");
  EXPECT_EQ(contract_specs("matmul", kRow, {operand({8, 8}, spec({{x}})), operand({8, 8}, spec({{}, {y}}))},
                           {{0, 2}, {2, 1}}, {8, 8, 8}, 2),
            (ShardedAxes{{x}, {y}, {}}));
}

TEST(SpecAlgebra, ReshapeMovesAxesOfSizeOne) {
  const auto reshaped = [](std::vector<std::vector<AxisName>> entries, const Dims& from, const Dims& to) {
    return reshape_spec(kRow, Uneven::kError, spec(std::move(entries)), from, to);
  };
  EXPECT_EQ(reshaped({{x}}, {8, 6}, {48}), (ShardedAxes{{x}}));
  EXPECT_EQ(reshaped({{x}, {y}}, {8, 8}, {2, 4, 8}), (ShardedAxes{{x}, {}, {y}}));
  EXPECT_EQ(reshaped({{x, y}}, {8, 6}, {4, 2, 6}), (ShardedAxes{{x, y}, {}, {}}));
  EXPECT_EQ(reshaped({{y, x}}, {4, 6}, {4, 6, 1}), (ShardedAxes{{y, x}, {}, {}}));
  EXPECT_EQ(reshaped({{x}}, {1, 8}, {8}), (ShardedAxes{{}}));
  const AbstractMesh one_device({x, y}, {1, 1}, {AxisType::kExplicit, AxisType::kExplicit});
  EXPECT_EQ(reshape_spec(one_device, Uneven::kError, spec({{x}, {y}}), {2, 4, 4}, {8, 4}), (ShardedAxes{{x, y}, {}}));
  EXPECT_NE(error_of([&] { reshaped({{x}, {y}}, {2, 4, 4}, {8, 4}); }), "no error") << "elements would move";
}

TEST(SpecAlgebra, ReshapeDropsAxesOfSizeOneOnlyWhereTheyAreAuto) {
  EXPECT_EQ(reshape_spec(kAutoRow, Uneven::kError, spec({{}, {x}}), {3, 4}, {12}), (ShardedAxes{{}}));
  EXPECT_NE(error_of([] { reshape_spec(kRow, Uneven::kError, spec({{}, {x}}), {3, 4}, {12}); }), "no error");
}

TEST(SpecAlgebra, ReshapeKeepsAShortLastShard) {
  EXPECT_EQ(reshape_spec(kAuto, Uneven::kLastShort, spec({{x}}), {5, 2}, {5, 2, 1}), (ShardedAxes{{x}, {}, {}}));
  EXPECT_EQ(reshape_spec(kAuto, Uneven::kLastShort, spec({{x}}), {3, 4}, {3, 2, 2}), (ShardedAxes{{x}, {}, {}}));
  EXPECT_NE(error_of([] { reshape_spec(kAuto, Uneven::kLastShort, spec({{x}}), {3, 4}, {12}); }), "no error");
}

TEST(SpecAlgebra, ReshapeNamesTheGroupsThatDevicesWouldHaveToExchange) {
  EXPECT_EQ(error_of([] { reshape_spec(kAuto, Uneven::kError, spec({{}, {x}}), {3, 4}, {12}); }),
            "reshape: the sharding does not carry over to the new shape: the group of dimensions [0, 1] of sizes "
            "[3, 4] becomes sizes [12], and shards dimension 1 over ('x',); expected groups of dimensions that are "
            "sharded from the first one on, got P(None, 'x') for (3, 4) to (12,); replicate the Array first: "
            "ad.reshard(x, ad.NamedSharding(x.sharding.mesh, ad.P())), or reshape np.asarray(x)");
}

}  // namespace
}  // namespace artifex_devices
