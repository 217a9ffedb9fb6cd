// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

namespace artifex_devices {

/// Axes of a mesh as bits: bit 0 is the first axis.
using MeshAxes = uint32_t;
inline constexpr int kStepMeshAxes = 8;

/// Indices of an einsum as bits; which index each axis of the mesh cuts, -1 for none.
using EinsumIndices = uint32_t;
using MeshSizes = std::array<int64_t, kStepMeshAxes>;
using EinsumCut = std::array<int8_t, kStepMeshAxes>;
inline constexpr EinsumCut kUncut = {-1, -1, -1, -1, -1, -1, -1, -1};

/// One array of an einsum.
struct EinsumArray {
  EinsumIndices indices = 0;
  EinsumCut cut = kUncut;
  double bytes = 0;  // of one device's shard; only to say which of two is smaller
  bool has(int index) const noexcept { return index >= 0 && (indices >> index & 1) != 0; }
};

/// The collectives that a product of cut arrays needs, in this order, and how its work is cut.
struct EinsumMoves {
  std::array<MeshAxes, 2> exchange{};  // all-to-alls of each operand, to the index that the result is cut along
  std::array<MeshAxes, 2> gather{};    // all-gathers of each operand
  EinsumCut product = kUncut;          // index that each axis cuts in the product that each device computes
  MeshAxes reduce_scatter = 0;         // partial sums of which each device keeps its part
  MeshAxes all_reduce = 0;             // partial sums that each device keeps whole
  MeshAxes exchange_result = 0;        // the result is cut along an index, and is to be along another
  MeshAxes gather_result = 0;          // the result is cut, and is to be whole
};

/// The rule, for each axis of the mesh on its own (docs/guide/step.md). It is what jax 0.10.2 compiles for all cuts of
/// a product and of a batch of products by one axis (tests/oracle/test_step.py).
///   1. It cuts the same summed index of both operands: partial sums are added up, scattered where it cuts the result.
///      So too for a summed index that only one operand has, where it does not cut the other.
///   2. It cuts the same other index of both: each device computes its part, and the result is brought to its own cut.
///   3. It cuts the result: both operands are brought to that index. One that has it is sliced if it is whole, and
///      takes an all-to-all if it is cut elsewhere; one that does not have it is gathered.
///   4. It does not cut the result. An operand that alone is cut, along a sum, is gathered; where the result is smaller
///      than it, the other is sliced instead. Of two that are cut apart one is brought to the other's index, as in 3:
///      that which is cut along a sum, else the smaller, of equals the second. Then partial sums are added up, or the
///      result is gathered.
/// Example: In[B_X, D] * W[D_X, F] -> Out[B_X, F]: rule 3, W is gathered over X.
EinsumMoves einsum_moves(const EinsumArray& a, const EinsumArray& b, const EinsumArray& result,
                         const MeshSizes& sizes) noexcept;

}  // namespace artifex_devices
