// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace artifex_devices {

/// Assignment of the axes of a mesh to the axes of a torus: factors[p][l] is the share of physical axis p (of size
/// dims[p]) of the logical axis l. Rows multiply to dims, columns to the mesh's shape. On one physical axis later
/// logical axes vary faster; in one logical axis later physical axes do. Example: (2, 2, 4) on 4x4 as {{1, 1, 4}, {2,
/// 2, 1}}: the last axis is all of x, the first two share y.
struct TorusAssignment {
  std::vector<std::vector<int64_t>> factors;
  friend bool operator==(const TorusAssignment&, const TorusAssignment&) = default;
};

/// Where an assignment stopped.
struct NoAssignment {
  int logical_axis = 0;
  std::vector<int64_t> remaining;  // free size of each physical axis; 0 for a used one
};

/// An assignment, or where it stopped.
struct AssignmentAttempt {
  std::optional<TorusAssignment> found;
  NoAssignment stopped;  // valid without `found`
};

/// JAX's rule for whole axes. Logical axes from last to first take the first set of free physical axes whose sizes
/// multiply to theirs: larger sets first, equally large ones in lexicographic order; axes of length 1 take part, and an
/// axis of size 1 may stay without any. Greedy: it may miss an assignment that exists ((2, 2, 4) on 2x2x4).
/// Sizes are 1 or more, at most 8 physical axes; the products of dims and mesh are equal. So in the functions below.
AssignmentAttempt assign_whole_axes(const std::vector<int64_t>& dims, const std::vector<int64_t>& mesh);

/// JAX's rule where axes may be split (`allow_split_physical_axes`). Logical axes, from last to first, each take the
/// best division of their size, which has the larger product of parts that are whole axes; then more such axes; then
/// the larger product of parts of axes that are already used; then the lexicographically larger parts.
AssignmentAttempt assign_split_axes(const std::vector<int64_t>& dims, const std::vector<int64_t>& mesh);

/// For each place of the mesh (row-major) the chip's place in the torus (row-major over dims).
/// Example: {{1, 1, 4}, {2, 2, 1}} on {4, 4} is 0, 4, 8, 12, 1, 5, ...
std::vector<int64_t> order_of(const TorusAssignment& assignment);

}  // namespace artifex_devices
