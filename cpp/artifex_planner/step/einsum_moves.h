// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

namespace artifex_devices::planner {

/// Axes of a mesh as bits: bit 0 is the first axis.
using MeshAxes = uint32_t;
inline constexpr int kStepMeshAxes = 8;

/// Indices of an einsum as bits; the index that each mesh axis shards, -1 for none.
using EinsumIndices = uint32_t;
using MeshSizes = std::array<int64_t, kStepMeshAxes>;
using IndexByAxis = std::array<int8_t, kStepMeshAxes>;
inline constexpr IndexByAxis kUnsharded = {-1, -1, -1, -1, -1, -1, -1, -1};

/// One array of an einsum.
struct EinsumArray {
  EinsumIndices indices = 0;
  IndexByAxis sharded = kUnsharded;
  double bytes = 0;  // of one device's shard, to compare two arrays
  bool has(int index) const noexcept { return index >= 0 && (indices >> index & 1) != 0; }
};

/// The collectives that a product of sharded arrays needs, in this order, and how its work is divided.
struct EinsumMoves {
  std::array<MeshAxes, 2> exchange{};  // all-to-alls of each operand, to the index that is sharded in the result
  std::array<MeshAxes, 2> gather{};    // all-gathers of each operand
  IndexByAxis product = kUnsharded;    // index that each axis shards in the product of one device
  MeshAxes reduce_scatter = 0;         // axes of partial sums; each device needs one part
  MeshAxes all_reduce = 0;             // partial sums that each device needs in full
  MeshAxes exchange_result = 0;        // the result is sharded along another index than it should be
  MeshAxes gather_result = 0;          // the result is sharded, and should not be
};

/// The rule, for each mesh axis separately (docs/how_to/plan_a_step.md). It matches what jax 0.10.2 compiles for all
/// shardings of a product and of a batch of products over one axis (tests/oracle/test_step.py).
///   1. The axis shards the same summed index of both operands: partial sums are added, and scattered if the axis
///   shards
///      the result. The same holds for a summed index that only one operand has, if the axis does not shard the other.
///   2. It shards the same other index of both: each device computes its part, and the result is resharded if needed.
///   3. It shards the result: both operands are brought to that index. An operand that has the index is sliced if the
///      axis does not shard it, and takes an all-to-all if the axis shards another index; one without it is gathered.
///   4. It does not shard the result. If it shards one operand only, along a sum, that operand is gathered; if the
///   result
///      is smaller than the operand, the other one is sliced instead. If it shards different indices of both, one
///      operand is brought to the other's index as in 3: the one sharded along a sum, else the smaller, of equals the
///      second. Then partial sums are added, or the result is gathered.
/// Example: In[B_X, D] * W[D_X, F] -> Out[B_X, F]: rule 3, W is gathered over X.
EinsumMoves einsum_moves(const EinsumArray& a, const EinsumArray& b, const EinsumArray& result,
                         const MeshSizes& sizes) noexcept;

}  // namespace artifex_devices::planner
