// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/planner/einsum_moves.h"

#include <cstddef>

namespace artifex_devices {
namespace {

/// Which operands one axis gathers: bit 0 the first, bit 1 the second.
struct Gathers {
  bool first = false;
  bool second = false;
};

Gathers gathers_of(const EinsumArray& a, const EinsumArray& b, const EinsumArray& result, size_t axis) noexcept {
  const int in_a = a.cut[axis];
  const int in_b = b.cut[axis];
  // Cut along a sum whose index the other has, and does not cut here: no device could add up its part.
  const bool blocks_a = in_a >= 0 && !result.has(in_a) && b.has(in_a) && in_b != in_a;
  const bool blocks_b = in_b >= 0 && !result.has(in_b) && a.has(in_b) && in_a != in_b;
  if (in_a < 0 || in_b < 0 || in_a == in_b || blocks_a || blocks_b) return {blocks_a, blocks_b};
  if (result.cut[axis] == in_a) return {false, true};
  if (result.cut[axis] == in_b) return {true, false};
  const bool first_is_smaller = a.bytes < b.bytes;
  return {first_is_smaller, !first_is_smaller};
}

}  // namespace

EinsumMoves einsum_moves(const EinsumArray& a, const EinsumArray& b, const EinsumArray& result) noexcept {
  EinsumMoves moves;
  for (size_t axis = 0; axis < kStepMeshAxes; ++axis) {
    const MeshAxes bit = MeshAxes{1} << axis;
    const Gathers gathers = gathers_of(a, b, result, axis);
    if (gathers.first) moves.gather[0] |= bit;
    if (gathers.second) moves.gather[1] |= bit;
    const int wanted = result.cut[axis];
    int product = -1;
    if (a.cut[axis] >= 0 && !gathers.first) product = a.cut[axis];
    if (b.cut[axis] >= 0 && !gathers.second) product = b.cut[axis];
    if (product < 0) product = wanted;
    moves.product[axis] = static_cast<int8_t>(product);
    if (product == wanted) continue;
    if (!result.has(product)) {
      (wanted >= 0 ? moves.reduce_scatter : moves.all_reduce) |= bit;
    } else {
      (wanted >= 0 ? moves.all_to_all : moves.gather_result) |= bit;
    }
  }
  return moves;
}

}  // namespace artifex_devices
