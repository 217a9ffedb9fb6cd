// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/step/elementwise.h"

namespace artifex_devices::planner {
namespace {

/// Bytes of an activation's shards on a device; 0 for other tensors and for activations that stay on the chip.
double activation_bytes(const StepTensor& tensor, const std::vector<int64_t>& mesh_sizes, const StepRules& rules) {
  if (tensor.role != StepRole::kActivation || tensor.is_on_chip) return 0;
  MeshAxes axes = 0;
  for (const int axis : tensor.axes) axes |= rules[static_cast<size_t>(axis)];
  double bytes = tensor.itemsize * static_cast<double>(tensor.count);
  for (const int64_t size : tensor.shape) bytes *= static_cast<double>(size);
  for (size_t axis = 0; axis < mesh_sizes.size(); ++axis) {
    if ((axes >> axis & 1) != 0) bytes /= static_cast<double>(mesh_sizes[axis]);
  }
  return bytes;
}

}  // namespace

BatchAmount elementwise_bytes(const StepModel& model, const std::vector<int64_t>& mesh_sizes, const StepRules& rules) {
  BatchAmount sum;
  const auto move = [&](const StepTensor& tensor, double times) {
    const double passes = !model.is_training ? 1 : tensor.is_kept ? 3 : 4;
    const double bytes = times * passes * activation_bytes(tensor, mesh_sizes, rules);
    sum += tensor.scales ? BatchAmount{0, bytes} : BatchAmount{bytes, 0};
  };
  std::vector<bool> is_written(model.tensors.size(), false);
  for (const StepOp& op : model.ops) is_written[static_cast<size_t>(op.output)] = true;
  for (size_t i = 0; i < is_written.size(); ++i) {
    if (!is_written[i]) move(model.tensors[i], 3);
  }
  for (const StepOp& op : model.ops) {
    if (op.kind == StepOpKind::kMatmul) continue;
    const auto input = static_cast<size_t>(op.inputs[0]);
    move(model.tensors[static_cast<size_t>(op.output)], op.kind == StepOpKind::kLookup ? 2 : 1);
    if (is_written[input]) move(model.tensors[input], 1);
  }
  return sum;
}

}  // namespace artifex_devices::planner
