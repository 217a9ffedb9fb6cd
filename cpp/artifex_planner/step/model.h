// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "artifex_devices/base/shape.h"
#include "artifex_devices/cluster/accelerator_catalogue.h"
#include "artifex_planner/step/einsum_moves.h"

namespace artifex_devices::planner {

enum class StepRole : uint8_t {
  kParameter,   // has a gradient and optimiser state
  kActivation,  // has a gradient
  kGiven        // data or a cache, without a gradient
};

/// A named array of a step, with `count` copies, one for each layer.
struct StepTensor {
  std::string name;
  Dims shape;
  std::vector<int> axes;  // logical axis of each dimension
  double itemsize = 2;    // bytes of one element; formats of 2 and 4 bits are packed
  StepRole role = StepRole::kActivation;
  int64_t count = 1;
  bool is_kept = true;      // until the backward pass; parameters and given tensors always are
  bool is_on_chip = false;  // never in memory: written and read inside one kernel
  bool scales = false;      // one of its dimensions grows with the batch
};

enum class StepOpKind : uint8_t {
  kMatmul,       // counts FLOPs
  kElementwise,  // the same rule for collectives; no FLOPs, and bytes in expected seconds only
  kLookup,       // rows of a table: a product with a one-hot array that each device builds for itself
  kRoute         // the same rows in another order, such as tokens sent to experts and back
};

/// One operation, `count` times in a step. Indices are numbers of an einsum, one for each dimension; an index of a
/// route may have another size afterwards.
struct StepOp {
  std::string name;
  StepOpKind kind = StepOpKind::kMatmul;
  std::array<int, 2> inputs{-1, -1};  // numbers of tensors; lookups and routes have one
  int output = -1;
  std::array<std::vector<int>, 3> indices;  // of the inputs' and the output's dimensions
  int64_t count = 1;
  MatmulFormat format = MatmulFormat::kBFloat16;
  bool is_recomputed = false;  // runs once more in the backward pass
  bool is_causal = false;      // the kernel skips the half of a product that a causal mask hides
};

/// One step: forward, or forward, backward and update.
struct StepModel {
  std::vector<StepTensor> tensors;
  std::vector<StepOp> ops;
  std::vector<std::string> logical_axes;
  std::vector<int> batch_axes;  // logical axes that grow with the batch, the batch itself first
  int64_t tokens = 1;           // of the batch that the shapes are of
  bool is_training = true;
  double optimizer_bytes = 0;    // of state for each parameter
  double gradient_itemsize = 0;  // of a parameter's gradient; 0: the parameter's own
  bool holds_gradients = true;   // all gradients at the same time; else each is applied immediately
};

/// The operation that errors name by default.
inline constexpr std::string_view kPlanStep = "plan_step";

/// Names of the axes in `axes`, first to last.
std::vector<std::string> names_of(const std::vector<std::string>& axis_names, MeshAxes axes);

/// Mesh axes that shard each logical axis, as bits.
using StepRules = std::vector<MeshAxes>;

/// Everything that is wrong with sharding this model by these rules, one text for each fault however many tensors have
/// it: logical axes that do not divide, with the nearest sizes that do, and mesh axes that shard two dimensions of one
/// tensor.
std::vector<std::string> step_mismatches(const StepModel& model, const std::vector<int64_t>& mesh_sizes,
                                         const std::vector<std::string>& mesh_names, const StepRules& rules);
/// Whether there are no mismatches, without texts.
bool step_fits_mesh(const StepModel& model, const std::vector<int64_t>& mesh_sizes, const StepRules& rules) noexcept;

}  // namespace artifex_devices::planner
