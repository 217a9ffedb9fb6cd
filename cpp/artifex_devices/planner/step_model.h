// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "artifex_devices/base/shape.h"
#include "artifex_devices/cluster/accelerator_catalogue.h"
#include "artifex_devices/planner/einsum_moves.h"

namespace artifex_devices {

enum class StepRole : uint8_t {
  kParameter,   // has a gradient and optimiser state
  kActivation,  // has a gradient
  kGiven        // has none: data, a cache
};

/// A named array of a step; `count` of them, one a layer.
struct StepTensor {
  std::string name;
  Dims shape;
  std::vector<int> axes;  // logical axis of each dimension
  double itemsize = 2;    // bytes of one element; formats of 2 and 4 bits are packed
  StepRole role = StepRole::kActivation;
  int64_t count = 1;
  bool is_kept = true;      // until the backward pass; parameters and what is given always are
  bool is_on_chip = false;  // never in memory: made and used inside one kernel
  bool scales = false;      // one of its dimensions grows with the batch
};

enum class StepOpKind : uint8_t {
  kMatmul,       // counts FLOPs
  kElementwise,  // the same rule for collectives; no FLOPs and bytes, as compilers fuse it into what is beside it
  kLookup,       // rows of a table: a product with a one-hot array that each device makes as it needs it
  kRoute         // the same rows in another order, as tokens sent to experts and back
};

/// One operation, `count` times a step. Indices are numbers of an einsum, one a dimension; an index of a route may have
/// another size afterwards.
struct StepOp {
  std::string name;
  StepOpKind kind = StepOpKind::kMatmul;
  std::array<int, 2> inputs{-1, -1};  // numbers of tensors; lookups and routes have one
  int output = -1;
  std::array<std::vector<int>, 3> indices;  // of the inputs' and the output's dimensions
  int64_t count = 1;
  MatmulFormat format = MatmulFormat::kBFloat16;
  bool is_recomputed = false;  // done once more in the backward pass
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
  bool holds_gradients = true;   // all gradients at once; else each is applied as it is made
};

/// The operation that errors name where no other is handed in.
inline constexpr std::string_view kPlanStep = "plan_step";

/// Names of the axes in `axes`, first to last.
std::vector<std::string> names_of(const std::vector<std::string>& axis_names, MeshAxes axes);

/// Mesh axes that shard each logical axis, as bits.
using StepRules = std::vector<MeshAxes>;

/// All that is wrong with cutting this model so, one line each: dimensions that do not divide, with the nearest sizes
/// that do, and axes of the mesh that cut two dimensions of one tensor. Empty: nothing.
std::vector<std::string> step_mismatches(const StepModel& model, const std::vector<int64_t>& mesh_sizes,
                                         const std::vector<std::string>& mesh_names, const StepRules& rules);
/// Whether there is none; makes no text.
bool step_fits_mesh(const StepModel& model, const std::vector<int64_t>& mesh_sizes, const StepRules& rules) noexcept;

}  // namespace artifex_devices
