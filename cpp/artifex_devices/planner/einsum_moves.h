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
  std::array<MeshAxes, 2> gather{};  // all-gathers of each operand, before
  EinsumCut product = kUncut;        // index that each axis cuts in the product that each device computes
  MeshAxes reduce_scatter = 0;       // partial sums of which each device keeps its part
  MeshAxes all_reduce = 0;           // partial sums that each device keeps whole
  MeshAxes all_to_all = 0;           // the result is cut along another index
  MeshAxes gather_result = 0;        // the result is cut, and is to be whole
};

/// The rule, for each axis of the mesh on its own (docs/guide/step.md; the four cases of the scaling book, chapter 3):
///   1. It cuts no summed index: each device computes its part of the result.
///   2. It cuts a summed index of one operand, and the other has that index whole: that operand is gathered.
///   3. It cuts the same summed index of both: partial sums are added up, scattered where the axis cuts the result.
///   4. It cuts different indices of both operands: one is gathered first. An operand cut along a summed index is; else
///      the one whose cut is not the result's; else the smaller, and the second of equals.
/// An axis that cuts only the result cuts the product too: slicing whole operands is free. A summed index that the
/// other operand does not have is as in 3. Example: In[B_X, D] * W[D_X, F] -> Out[B_X, F]: case 4, W is gathered over
/// X.
EinsumMoves einsum_moves(const EinsumArray& a, const EinsumArray& b, const EinsumArray& result) noexcept;

}  // namespace artifex_devices
