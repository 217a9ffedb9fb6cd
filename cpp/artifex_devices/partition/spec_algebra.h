// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "artifex_devices/base/shape.h"
#include "artifex_devices/partition/abstract_mesh.h"
#include "artifex_devices/partition/partition_spec.h"
#include "artifex_devices/partition/shard_domains.h"

namespace artifex_devices {

/// Specs of the results of operations: pure arithmetic, without devices.
///
/// The mesh axes that shard each dimension of an array, major to minor; empty for a dimension without axes. Mesh axes
/// of size 1 are treated like larger axes, so a program has the same specs on 8 devices and on 1. Sizes only decide
/// whether a dimension is divided evenly, and whether a device needs elements of another device. Example: on mesh {x:
/// 2, y: 1}, P('x', 'y') of a matrix is {{x}, {y}}.
using ShardedAxes = std::vector<std::vector<AxisName>>;

/// The properties of an operand that decide the spec of the result.
struct SpecOperand {
  Dims shape;
  PartitionSpec spec;
  bool has_spec = true;    // false: an array on a single device
  bool is_on_mesh = true;  // false: it is placed on another mesh than the result, and its spec does not count
  int64_t nbytes = 0;
};

/// The axes of the first `rank` entries of a spec.
ShardedAxes sharded_axes(const PartitionSpec& spec, int64_t rank);

/// The inverse of sharded_axes, without trailing Nones.
PartitionSpec to_partition_spec(const ShardedAxes& axes);

/// Whether one of the axes is Explicit: such a sharding may change only where the caller asks for it.
bool any_explicit(const AbstractMesh& mesh, const std::vector<AxisName>& axes);

/// The spec of an element-wise result: each dimension is sharded as in the first operand that shards it. Operands
/// broadcast from the right; a dimension that is broadcast does not count, nor does one where `shape` is -1.
/// Throws ShardingTypeError where operands disagree on Explicit axes.
ShardedAxes broadcast_specs(std::string_view operation, const AbstractMesh& mesh, const Dims& shape,
                            const std::vector<SpecOperand>& operands);

/// The spec of a contraction, for labels 0 to sizes.size() - 1. The first `out_rank` labels are the dimensions of the
/// result; the contraction sums over the rest. Each label is sharded as in the largest operand that shards it, by axes
/// that no earlier label has. `labels` has one label for each dimension of each operand; a dimension whose size differs
/// from the size of its label is broadcast and does not count. Throws ShardingTypeError where Explicit axes shard one
/// dimension in two ways, or two dimensions of the result.
ShardedAxes contract_specs(std::string_view operation, const AbstractMesh& mesh,
                           const std::vector<SpecOperand>& operands, const std::vector<std::vector<int64_t>>& labels,
                           const Dims& sizes, int64_t out_rank);

/// The spec of the same elements in another shape, such that each device keeps its elements in their order. Both shapes
/// have the same number of elements. Axes of a dimension of size 1 are dropped, as are Auto axes of size 1 that fit no
/// new dimension.
/// Example: (8, 6) sharded as {{x}, {}} is {{x}, {}, {}} as (4, 2, 6) on mesh {x: 4}.
/// Throws ShardingTypeError where a device would need elements of another device, or an Explicit axis fits no
/// dimension.
ShardedAxes reshape_spec(const AbstractMesh& mesh, Uneven uneven, const PartitionSpec& spec, const Dims& from,
                         const Dims& to);

}  // namespace artifex_devices
