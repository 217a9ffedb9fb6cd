// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/step/einsum_moves.h"

#include <cstddef>

namespace artifex_devices::planner {
namespace {

/// Moves for one mesh axis.
struct AxisMoves {
  std::array<bool, 2> exchange{};
  std::array<bool, 2> gather{};
  int product = -1;
};

/// The index that can stay sharded: the same index of both operands, or a summed index of only one operand; else -1.
int index_that_stays(const EinsumArray& a, const EinsumArray& b, const EinsumArray& result, size_t axis) noexcept {
  const int in_a = a.sharded[axis];
  const int in_b = b.sharded[axis];
  if (in_a >= 0 && in_a == in_b) return in_a;
  if (in_a >= 0 && in_b < 0 && !result.has(in_a) && !b.has(in_a)) return in_a;
  if (in_b >= 0 && in_a < 0 && !result.has(in_b) && !a.has(in_b)) return in_b;
  return -1;
}

/// Operands brought to the index that the result shards.
AxisMoves moves_to(int wanted, const std::array<const EinsumArray*, 2>& operands, size_t axis) noexcept {
  AxisMoves moves{.product = wanted};
  for (size_t i = 0; i < 2; ++i) {
    const int own = operands[i]->sharded[axis];
    if (own < 0 || own == wanted) continue;
    (operands[i]->has(wanted) ? moves.exchange : moves.gather)[i] = true;
  }
  return moves;
}

/// The result is whole.
AxisMoves moves_to_whole(const std::array<const EinsumArray*, 2>& operands, const EinsumArray& result, size_t axis,
                         int64_t size) noexcept {
  // Sharded over a summed index that the other operand has but does not shard: no device could add up its part.
  const auto is_blocked = [&](size_t i) {
    const int own = operands[i]->sharded[axis];
    return own >= 0 && !result.has(own) && operands[1 - i]->has(own);
  };
  AxisMoves moves;
  for (size_t i = 0; i < 2; ++i) {
    if (operands[1 - i]->sharded[axis] >= 0) continue;
    moves.gather[i] = is_blocked(i) && operands[i]->bytes * static_cast<double>(size) <= result.bytes;
    moves.product = moves.gather[i] ? -1 : operands[i]->sharded[axis];
    if (operands[i]->sharded[axis] >= 0) return moves;
  }
  if (operands[0]->sharded[axis] < 0) return moves;
  const bool first_is_smaller = operands[0]->bytes < operands[1]->bytes;
  const size_t mover = is_blocked(0) != is_blocked(1) ? (is_blocked(0) ? 0 : 1) : (first_is_smaller ? 0 : 1);
  moves.product = operands[1 - mover]->sharded[axis];
  (operands[mover]->has(moves.product) ? moves.exchange : moves.gather)[mover] = true;
  return moves;
}

}  // namespace

EinsumMoves einsum_moves(const EinsumArray& a, const EinsumArray& b, const EinsumArray& result,
                         const MeshSizes& sizes) noexcept {
  EinsumMoves moves;
  const std::array<const EinsumArray*, 2> operands = {&a, &b};
  for (size_t axis = 0; axis < kStepMeshAxes; ++axis) {
    const MeshAxes bit = MeshAxes{1} << axis;
    const int wanted = result.sharded[axis];
    AxisMoves own{.product = index_that_stays(a, b, result, axis)};
    if (own.product < 0) {
      own = wanted >= 0 ? moves_to(wanted, operands, axis) : moves_to_whole(operands, result, axis, sizes[axis]);
    }
    for (size_t i = 0; i < 2; ++i) {
      if (own.exchange[i]) moves.exchange[i] |= bit;
      if (own.gather[i]) moves.gather[i] |= bit;
    }
    moves.product[axis] = static_cast<int8_t>(own.product);
    if (own.product == wanted) continue;
    if (result.has(own.product)) {
      (wanted >= 0 ? moves.exchange_result : moves.gather_result) |= bit;
    } else {
      (wanted >= 0 ? moves.reduce_scatter : moves.all_reduce) |= bit;
    }
  }
  return moves;
}

}  // namespace artifex_devices::planner
