// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "artifex_planner/fields.h"
#include "artifex_planner/step/model.h"

namespace artifex_devices::planner {

/// A step as its author writes it, with names, einsums and roles as text (docs/how_to/plan_a_step.md). Sizes and counts
/// are 0 to 2^62.
struct TensorDescription {
  std::string name;
  Dims shape;
  std::vector<std::string> axes;  // logical name of each dimension
  std::string dtype = {};
  double itemsize = 2;  // bytes of one element; less than 1 for packed formats
  std::string role = "activation";
  int64_t count = 1;
  bool is_kept = true;
  bool is_on_chip = false;
};
void visit_fields(FieldsOf<TensorDescription> auto& tensor, const auto& visit) {
  visit("name", tensor.name);
  visit("shape", tensor.shape);
  visit("axes", tensor.axes);
  visit("dtype", tensor.dtype);
  visit("itemsize", tensor.itemsize);
  visit("role", tensor.role);
  visit("count", tensor.count);
  visit("is_kept", tensor.is_kept);
  visit("is_on_chip", tensor.is_on_chip);
}

struct OperationDescription {
  std::string name;
  std::string einsum;
  std::vector<std::string> inputs;
  std::string output = {};
  std::string kind = "matmul";
  int64_t count = 1;
  std::string dtype = {};  // of a product; empty: that of its operands
  bool is_recomputed = false;
  bool is_causal = false;
};
void visit_fields(FieldsOf<OperationDescription> auto& operation, const auto& visit) {
  visit("name", operation.name);
  visit("einsum", operation.einsum);
  visit("inputs", operation.inputs);
  visit("output", operation.output);
  visit("kind", operation.kind);
  visit("count", operation.count);
  visit("dtype", operation.dtype);
  visit("is_recomputed", operation.is_recomputed);
  visit("is_causal", operation.is_causal);
}

struct OptimizerDescription {
  double bytes_per_parameter = 8;
  double gradient_itemsize = 0;  // 0: the parameter's own
  bool holds_gradients = true;
};
void visit_fields(FieldsOf<OptimizerDescription> auto& optimizer, const auto& visit) {
  visit("bytes_per_parameter", optimizer.bytes_per_parameter);
  visit("gradient_itemsize", optimizer.gradient_itemsize);
  visit("holds_gradients", optimizer.holds_gradients);
}

struct StepDescription {
  std::vector<TensorDescription> tensors;
  std::vector<OperationDescription> operations;
  int64_t tokens = 1;
  std::vector<std::string> batch_axes{"batch"};
  std::optional<OptimizerDescription> optimizer;
};
void visit_fields(FieldsOf<StepDescription> auto& step, const auto& visit) {
  visit("tensors", step.tensors);
  visit("operations", step.operations);
  visit("tokens", step.tokens);
  visit("batch_axes", step.batch_axes);
  visit("optimizer", step.optimizer);
}

/// Everything that is inconsistent, one text each; empty where step_model() accepts the description. Mistakes in single
/// tensors come first: operations are checked only if all tensors are correct.
/// Example: an operation "bd,df->bf" on tensors of shapes (8, 4) and (5, 6): "operation 'up' has 'd' of unequal sizes:
/// 4 in 'x', 5 in 'w'".
std::vector<std::string> step_mistakes(const StepDescription& description);

/// The model that the planner computes with. `operation` is the name that errors begin with. Throws InvalidArgument for
/// inconsistent descriptions, Unavailable for a product in a format that no accelerator has.
StepModel step_model(const StepDescription& description, std::string_view operation = kPlanStep);

}  // namespace artifex_devices::planner
