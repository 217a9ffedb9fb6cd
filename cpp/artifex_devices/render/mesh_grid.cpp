// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/render/mesh_grid.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "artifex_devices/render/labels.h"

namespace artifex_devices {
namespace {

constexpr int64_t kDevicesPerRow = 16;  // of a mesh of one axis

}  // namespace

MeshGrid::MeshGrid(const Mesh& mesh, int64_t max_cells) : mesh_(mesh) {
  const Dims& sizes = mesh.abstract_mesh().axis_sizes();
  const int64_t limit = std::max<int64_t>(max_cells, 1);
  has_row_axis_ = sizes.size() > 1;
  all_columns_ = has_row_axis_ ? mesh.size() / sizes[0] : std::min(mesh.size(), kDevicesPerRow);
  all_rows_ = has_row_axis_ ? sizes[0] : (mesh.size() + all_columns_ - 1) / all_columns_;
  // About as many rows as columns when rows and columns are truncated.
  const auto side = static_cast<int64_t>(std::sqrt(static_cast<double>(limit)));
  columns_ = std::min(all_columns_, std::max(side, limit / all_rows_));
  rows_ = std::min(all_rows_, std::max<int64_t>(limit / columns_, 1));
}

int64_t MeshGrid::position(int64_t row, int64_t column) const noexcept {
  const int64_t position = row * all_columns_ + column;
  return position < mesh_.size() ? position : -1;
}

std::string MeshGrid::title() const {
  return fmt::format("Mesh({}): {} {} device{}", mesh_.abstract_mesh().axes_text(), mesh_.size(),
                     mesh_.devices()->front()->platform(), mesh_.size() == 1 ? "" : "s");
}

std::string MeshGrid::row_axis() const {
  return has_row_axis_ ? axis_label(mesh_.abstract_mesh().axis_names()[0]) : "";
}

std::string MeshGrid::column_axes() const {
  const auto& names = mesh_.abstract_mesh().axis_names();
  std::string label;
  for (size_t axis = has_row_axis_ ? 1 : 0; axis < names.size(); ++axis) {
    if (!label.empty()) label += ',';
    label += axis_label(names[axis]);
  }
  return label;
}

std::string MeshGrid::row_label(int64_t row) const {
  if (has_row_axis_) return fmt::format("{}", row);
  return all_rows_ > 1 ? fmt::format("{}", row * all_columns_) : "";
}

std::string MeshGrid::column_label(int64_t column) const {
  if (!has_row_axis_) return fmt::format("{}{}", all_rows_ > 1 ? "+" : "", column);
  const Dims& sizes = mesh_.abstract_mesh().axis_sizes();
  std::string label;
  for (int64_t axis = sizes.size() - 1; axis > 0; --axis) {
    label = fmt::format("{}{}{}", column % sizes[axis], label.empty() ? "" : ",", label);
    column /= sizes[axis];
  }
  return label;
}

std::string MeshGrid::note() const {
  if (rows_ == all_rows_ && columns_ == all_columns_) return "";
  if (!has_row_axis_) return fmt::format("shown: {} of {} devices", rows_ * columns_, mesh_.size());
  return fmt::format("shown: {} of {} rows and {} of {} columns", rows_, all_rows_, columns_, all_columns_);
}

}  // namespace artifex_devices
