// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/step/model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace artifex_devices::planner {
namespace {

int64_t parts_of(const std::vector<int64_t>& sizes, MeshAxes axes) noexcept {
  int64_t parts = 1;
  for (size_t axis = 0; axis < sizes.size(); ++axis) {
    if ((axes >> axis & 1) != 0) parts *= sizes[axis];
  }
  return parts;
}

/// Calls `visit(tensor, dimension, axes)` for each dimension, and `twice(tensor, first, second, axes)` for each pair
/// that shares axes.
template <class Visit, class Twice>
void each_dimension(const StepModel& model, const StepRules& rules, Visit visit, Twice twice) {
  for (const StepTensor& tensor : model.tensors) {
    for (size_t d = 0; d < tensor.axes.size(); ++d) {
      const MeshAxes axes = rules[static_cast<size_t>(tensor.axes[d])];
      visit(tensor, d, axes);
      for (size_t before = 0; before < d; ++before) {
        const MeshAxes both = axes & rules[static_cast<size_t>(tensor.axes[before])];
        if (both != 0) twice(tensor, before, d, both);
      }
    }
  }
}

}  // namespace

std::vector<std::string> names_of(const std::vector<std::string>& axis_names, MeshAxes axes) {
  std::vector<std::string> found;
  for (size_t axis = 0; axis < axis_names.size(); ++axis) {
    if ((axes >> axis & 1) != 0) found.push_back(axis_names[axis]);
  }
  return found;
}

std::vector<std::string> step_mismatches(const StepModel& model, const std::vector<int64_t>& mesh_sizes,
                                         const std::vector<std::string>& mesh_names, const StepRules& rules) {
  struct Mismatch {
    std::string before;  // the name of the tensor
    std::string after;
    std::string tensor;  // the first one
    int others = 0;
  };
  std::vector<Mismatch> found;
  const auto add = [&](const StepTensor& tensor, std::string before, std::string after) {
    for (Mismatch& each : found) {
      if (each.before != before || each.after != after) continue;
      ++each.others;
      return;
    }
    found.push_back({std::move(before), std::move(after), tensor.name});
  };
  const auto axis_name = [&](int axis) { return model.logical_axes[static_cast<size_t>(axis)]; };
  each_dimension(
      model, rules,
      [&](const StepTensor& tensor, size_t d, MeshAxes axes) {
        const int64_t size = tensor.shape[static_cast<int64_t>(d)];
        const int64_t parts = parts_of(mesh_sizes, axes);
        if (size % parts == 0) return;
        const int64_t below = size / parts * parts;
        add(tensor, fmt::format("{} ({} in ", axis_name(tensor.axes[d]), size),
            fmt::format(") is sharded {} ways over {}; nearest {}{}", parts,
                        fmt::join(names_of(mesh_names, axes), ", "),
                        below > 0 ? fmt::format("{} or ", below) : std::string(), below + parts));
      },
      [&](const StepTensor& tensor, size_t first, size_t second, MeshAxes axes) {
        const auto [one, other] = std::minmax(tensor.axes[first], tensor.axes[second]);
        add(tensor,
            fmt::format("{} shards both {} and {} of ", fmt::join(names_of(mesh_names, axes), ", "), axis_name(one),
                        axis_name(other)),
            "");
      });
  std::vector<std::string> texts;
  for (const Mismatch& each : found) {
    const std::string others =
        each.others == 0 ? "" : fmt::format(" and {} other tensor{}", each.others, each.others == 1 ? "" : "s");
    texts.push_back(each.before + each.tensor + others + each.after);
  }
  return texts;
}

bool step_fits_mesh(const StepModel& model, const std::vector<int64_t>& mesh_sizes, const StepRules& rules) noexcept {
  bool fits = true;
  each_dimension(
      model, rules,
      [&](const StepTensor& tensor, size_t d, MeshAxes axes) {
        fits = fits && tensor.shape[static_cast<int64_t>(d)] % parts_of(mesh_sizes, axes) == 0;
      },
      [&](const StepTensor&, size_t, size_t, MeshAxes) { fits = false; });
  return fits;
}

}  // namespace artifex_devices::planner
