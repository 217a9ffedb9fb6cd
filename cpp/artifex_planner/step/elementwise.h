// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "artifex_planner/step/work.h"

namespace artifex_devices::planner {

/// Bytes that element-wise kernels read and write on each device. An activation that no operation writes is the result
/// of such a kernel, which reads two arrays of its size. An operation other than a product reads its operand, unless
/// such a kernel has just written it, and writes its result; a lookup reads as many rows as it writes. The backward
/// pass moves twice as much, and activations that are not kept are computed once more. Example: x = a + b and y =
/// norm(x) move 4 arrays forward: a, b, x and y.
BatchAmount elementwise_bytes(const StepModel& model, const std::vector<int64_t>& mesh_sizes, const StepRules& rules);

}  // namespace artifex_devices::planner
