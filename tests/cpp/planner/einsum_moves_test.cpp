// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/step/einsum_moves.h"

#include <gtest/gtest.h>

#include <string>

namespace artifex_devices::planner {
namespace {

/// Letters of an array; a digit after a letter is the axis of the mesh that cuts it: "b0d".
EinsumArray array(const std::string& text, double bytes = 0) {
  EinsumArray made;
  made.bytes = bytes;
  int last = -1;
  for (const char each : text) {
    if (each >= 'a') {
      last = each - 'a';
      made.indices |= EinsumIndices{1} << last;
    } else {
      made.sharded[static_cast<size_t>(each - '0')] = static_cast<int8_t>(last);
    }
  }
  return made;
}

constexpr MeshSizes kSizes = {4, 4, 1, 1, 1, 1, 1, 1};

struct Expected {
  MeshAxes gather_first = 0;
  MeshAxes gather_second = 0;
  MeshAxes reduce_scatter = 0;
  MeshAxes all_reduce = 0;
  MeshAxes gather_result = 0;
  MeshAxes exchange_first = 0;
  MeshAxes exchange_second = 0;
  MeshAxes exchange_result = 0;
};

void expect(const EinsumArray& a, const EinsumArray& b, const EinsumArray& result, const Expected& expected) {
  const EinsumMoves moves = einsum_moves(a, b, result, kSizes);
  EXPECT_EQ(moves.gather[0], expected.gather_first);
  EXPECT_EQ(moves.gather[1], expected.gather_second);
  EXPECT_EQ(moves.reduce_scatter, expected.reduce_scatter);
  EXPECT_EQ(moves.all_reduce, expected.all_reduce);
  EXPECT_EQ(moves.exchange[0], expected.exchange_first);
  EXPECT_EQ(moves.exchange[1], expected.exchange_second);
  EXPECT_EQ(moves.exchange_result, expected.exchange_result);
  EXPECT_EQ(moves.gather_result, expected.gather_result);
}

// The cases of https://jax-ml.github.io/scaling-book/sharding, A[I, J] * B[J, K] -> C[I, K].
TEST(EinsumMoves, Case1NoSummedIndexIsSharded) {
  expect(array("ij"), array("jk"), array("ik"), {});
  expect(array("i0j"), array("jk"), array("i0k"), {});
  expect(array("i0j"), array("jk1"), array("i0k1"), {});
}

TEST(EinsumMoves, Case2OneOperandIsShardedAlongTheSum) {
  expect(array("ij0"), array("jk"), array("ik"), {.gather_first = 1});
  expect(array("ij"), array("j0k"), array("ik"), {.gather_second = 1});
  expect(array("ij0", 10), array("jk"), array("ik", 40), {.gather_first = 1});
  expect(array("ij0", 11), array("jk"), array("ik", 40), {.all_reduce = 1});
  expect(array("ij"), array("j0k", 11), array("ik", 40), {.all_reduce = 1});
  expect(array("ij"), array("j0k", 11), array("i0k", 10), {.gather_second = 1});
}

TEST(EinsumMoves, Case3BothAreShardedAlongTheSum) {
  expect(array("ij0"), array("j0k"), array("ik"), {.all_reduce = 1});
  expect(array("ij0"), array("j0k"), array("ik0"), {.reduce_scatter = 1});
  expect(array("i1j0"), array("j0k"), array("i1k0"), {.reduce_scatter = 1});
}

TEST(EinsumMoves, Case4OneAxisShardsDifferentIndices) {
  expect(array("i0j"), array("jk0"), array("i0k"), {.gather_second = 1});
  expect(array("i0j"), array("jk0"), array("ik0"), {.gather_first = 1});
  // The result is whole: the smaller operand is gathered, then the result.
  expect(array("i0j", 10), array("jk0", 20), array("ik"), {.gather_first = 1, .gather_result = 1});
  expect(array("i0j", 20), array("jk0", 20), array("ik"), {.gather_second = 1, .gather_result = 1});
}

TEST(EinsumMoves, Case4WhereOneIsShardedAlongTheSum) {
  expect(array("b0d"), array("d0f"), array("b0f"), {.gather_second = 1});  // fully sharded data parallelism
  expect(array("bd0"), array("df0"), array("bf0"), {.gather_first = 1});   // tensor parallelism, the book's way
  expect(array("i0jm"), array("jm0k"), array("i0k"), {.gather_second = 1});
  expect(array("ij0m"), array("jm0k"), array("ik"), {.all_reduce = 1, .exchange_second = 1});
}

TEST(EinsumMoves, TheShardingOfTheResult) {
  expect(array("ij"), array("jk"), array("i0k"), {});  // operands are sliced
  EXPECT_EQ(einsum_moves(array("ij"), array("jk"), array("i0k"), kSizes).product[0], 'i' - 'a');
  expect(array("i0j"), array("jk"), array("ik"), {.gather_result = 1});
  expect(array("i0j"), array("jk"), array("ik0"), {.gather_first = 1});
  expect(array("ij0"), array("jk"), array("i0k"), {.exchange_first = 1});
  expect(array("ij"), array("j0k"), array("ik0"), {.exchange_second = 1});
  expect(array("ij0"), array("jk0"), array("i0k"), {.gather_second = 1, .exchange_first = 1});
  expect(array("i0j"), array("j0k"), array("ik0"), {.gather_first = 1, .exchange_second = 1});
}

TEST(EinsumMoves, HandlesIndicesOfBothOperandsAndTheResult) {
  expect(array("e0cd"), array("e0df"), array("e0cf"), {});
  expect(array("e0cd"), array("edf"), array("e0cf"), {});
  expect(array("ec0d"), array("e0df"), array("e0cf"), {.exchange_first = 1});
  expect(array("e0cd"), array("e0df"), array("ecf"), {.gather_result = 1});
  expect(array("e0cd"), array("e0df"), array("ec0f"), {.exchange_result = 1});
  expect(array("e0cd"), array("ed0f"), array("ecf"), {.gather_result = 1, .exchange_second = 1});
  expect(array("ec0d", 1), array("e0df", 2), array("ecf"), {.gather_result = 1, .exchange_first = 1});
  expect(array("ec0d", 2), array("e0df", 1), array("ecf"), {.gather_second = 1, .gather_result = 1});
}

TEST(EinsumMoves, ReducesASumOverAnIndexOfOneOperand) {
  expect(array("b0d"), array("b0d"), array("d"), {.all_reduce = 1});
  expect(array("b0d"), array("d"), array("d"), {.all_reduce = 1});
  expect(array("d"), array("b0d"), array("d0"), {.reduce_scatter = 1});
}

TEST(EinsumMoves, TreatsAxesIndependently) {
  // In[b_X, d_Y] * W[d_X, f_Y] -> Tmp[b_X, f_Y]
  expect(array("b0d1"), array("d0f1"), array("b0f1"), {.gather_first = 2, .gather_second = 1});
  // Tmp[b_X, f_Y] * W[f_Y, d_X] -> Out[b_X, d_Y]
  expect(array("b0f1"), array("f1d0"), array("b0d1"), {.gather_second = 1, .reduce_scatter = 2});
  // In[b_X, d_Y] * dTmp[b_X, f_Y] -> dW[d_X, f_Y]
  expect(array("b0d1"), array("b0f1"), array("d0f1"), {.gather_first = 2, .reduce_scatter = 1});
}

}  // namespace
}  // namespace artifex_devices::planner
