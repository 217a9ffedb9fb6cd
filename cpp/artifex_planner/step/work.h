// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "artifex_planner/cost/collectives.h"
#include "artifex_planner/step/model.h"

namespace artifex_devices::planner {

/// A quantity as a function of the batch: fixed + scaled * s, where s = 1 is the batch of the model's shapes.
struct BatchAmount {
  double fixed = 0;
  double scaled = 0;
  double at(double scale) const noexcept { return fixed + scaled * scale; }
  BatchAmount& operator+=(const BatchAmount& other) noexcept {
    fixed += other.fixed;
    scaled += other.scaled;
    return *this;
  }
  friend BatchAmount operator*(const BatchAmount& amount, double factor) noexcept {
    return {amount.fixed * factor, amount.scaled * factor};
  }
  friend bool operator==(const BatchAmount&, const BatchAmount&) = default;
};

enum class StepPass : uint8_t { kForward, kBackward };
template <>
inline constexpr std::array<std::string_view, 2> kKindNames<StepPass>{"forward", "backward"};

/// One collective that the rules imply, on one array.
struct StepCollective {
  int op = 0;  // number of the first operation that needs it
  int tensor = 0;
  bool is_gradient = false;  // whether it is on the tensor's gradient
  StepPass pass = StepPass::kForward;
  CollectiveOp kind = CollectiveOp::kAllGather;
  MeshAxes axes = 0;
  bool is_parameter = false;  // whether the tensor is a parameter: no activation waits for the collective
  int64_t group = 1;          // devices that work together
  int64_t count = 1;          // repetitions in a step
  BatchAmount bytes = {};     // of the global array of a group, each time (collective_cost.h)
};

/// A product is the operation itself, or the gradient of one of its inputs.
enum class StepProductKind : uint8_t { kForward, kRecomputed, kFirstGradient, kSecondGradient };
template <>
inline constexpr std::array<std::string_view, 4> kKindNames<StepProductKind>{
    "forward", "recomputed", "gradient of the first input", "gradient of the second input"};

/// One product on each device, summed over its repetitions in a step.
struct StepProduct {
  int op = 0;
  StepProductKind kind = StepProductKind::kForward;
  MatmulFormat format = MatmulFormat::kBFloat16;
  BatchAmount flops;
  BatchAmount bytes;  // operands and result, once each, without what stays on the chip
  // One repetition at the batch of the model: `batches` products with results of rows x columns.
  double rows = 1;
  double columns = 1;
  double batches = 1;
  bool is_attention = false;  // an operand or the result stays on the chip: one kernel with its neighbours
  bool is_backward() const noexcept { return kind != StepProductKind::kForward; }
};

/// Bytes on each device.
struct StepMemory {
  BatchAmount parameters;
  BatchAmount gradients;
  BatchAmount optimizer;
  BatchAmount activations;           // kept for the backward pass
  BatchAmount given;                 // data and caches
  std::vector<BatchAmount> working;  // for each product: gathered operands, operands that are not kept, the result
  /// All but `working`.
  BatchAmount kept() const noexcept;
  double working_at(double scale) const noexcept;
  double at(double scale) const noexcept { return kept().at(scale) + working_at(scale); }
};

/// The work of a step on each device, independent of hardware.
struct StepWork {
  StepMemory memory;
  std::vector<StepProduct> products;
  std::vector<StepCollective> collectives;
  BatchAmount update_bytes;       // read and written by the update of parameters
  BatchAmount elementwise_bytes;  // elementwise.h
  int64_t layer_passes = 0;       // forward and backward passes of layers: the largest count of an operation
  bool is_training = true;
};

/// The work of a model that is sharded by these rules. In each pass an array is gathered once over the same axes,
/// however many operations use it, takes the same all-to-all once, and a gradient (or result) that several operations
/// add to is reduced once. Polls for interrupts. Throws InvalidArgument where the rules do not fit (see
/// step_mismatches) and for invalid models: numbers out of range, indices that are not one for each dimension.
StepWork step_work(const StepModel& model, const std::vector<int64_t>& mesh_sizes, const StepRules& rules,
                   std::string_view operation = kPlanStep);

}  // namespace artifex_devices::planner
