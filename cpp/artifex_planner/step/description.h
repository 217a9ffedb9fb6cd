// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

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

struct OperationDescription {
  std::string name;
  std::string einsum;
  std::vector<std::string> inputs;
  std::string output = {};
  std::string kind = "matmul";
  int64_t count = 1;
  std::string dtype = {};  // of a product; empty: that of its operands
  bool is_recomputed = false;
};

struct OptimizerDescription {
  double bytes_per_parameter = 8;
  double gradient_itemsize = 0;  // 0: the parameter's own
  bool holds_gradients = true;
};

struct StepDescription {
  std::vector<TensorDescription> tensors;
  std::vector<OperationDescription> operations;
  int64_t tokens = 1;
  std::vector<std::string> batch_axes{"batch"};
  std::optional<OptimizerDescription> optimizer;
};

/// Everything that is inconsistent, one text each; empty where step_model() accepts the description. Mistakes in single
/// tensors come first: operations are checked only where there are none.
/// Example: an operation "bd,df->bf" on tensors of shapes (8, 4) and (5, 6): "operation 'up' has 'd' of unequal sizes:
/// 4 in 'x', 5 in 'w'".
std::vector<std::string> step_mistakes(const StepDescription& description);

/// The model that the planner computes with. `operation` is the name that errors begin with. Throws InvalidArgument for
/// inconsistent descriptions, Unavailable for a product in a format that no accelerator has.
StepModel step_model(const StepDescription& description, std::string_view operation = kPlanStep);

}  // namespace artifex_devices::planner
