// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "artifex_devices/base/shape.h"
#include "artifex_devices/sharding/mesh.h"

namespace artifex_devices {

/// A mesh as a grid for a picture: rows are the first axis, columns all others. A mesh of one axis is one row, or rows
/// of 16 when it is longer. The mesh must outlive the grid. Example: mesh {a: 2, b: 2, c: 2} has 2 rows and
/// 4 columns, "0,0" to "1,1".
class MeshGrid {
 public:
  /// Has at most `max_cells` cells, from the first row and column on.
  MeshGrid(const Mesh& mesh, int64_t max_cells);

  int64_t rows() const noexcept { return rows_; }  // that are drawn
  int64_t columns() const noexcept { return columns_; }
  /// Position in the mesh, or -1 beyond the end of a short last row.
  int64_t position(int64_t row, int64_t column) const noexcept;

  std::string title() const;        // "Mesh('x': 2, 'y': 4): 8 cpu devices"
  std::string row_axis() const;     // "x"; "" for a mesh of one axis
  std::string column_axes() const;  // "y", "b,c"
  std::string row_label(int64_t row) const;
  std::string column_label(int64_t column) const;
  /// A note on omitted cells, or "".
  std::string note() const;

 private:
  const Mesh& mesh_;
  bool has_row_axis_;
  int64_t all_rows_;
  int64_t all_columns_;
  int64_t rows_;
  int64_t columns_;
};

}  // namespace artifex_devices
