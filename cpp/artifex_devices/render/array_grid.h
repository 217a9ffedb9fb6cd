// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "artifex_devices/base/shape.h"
#include "artifex_devices/sharding/sharding.h"

namespace artifex_devices {

/// The two dimensions of an array that a picture shows, and which devices hold what in them. Rank 1 is one row, rank 0
/// one cell; of higher ranks the two dimensions that are cut most, in their order.
/// Example: (16, 16) with P(None, 'x') on mesh {x: 2, y: 4} is 1 row and 2 columns; cell (0, 1) is devices 4 to 7.
class ArrayGrid {
 public:
  /// Cells beyond `max_rows` and `max_columns` are left out. Throws as Sharding::domains.
  ArrayGrid(const Sharding& sharding, const Dims& shape, int64_t max_rows, int64_t max_columns,
            std::string_view operation);

  /// Dimension of the array along the rows and columns; -1 for one that the array does not have.
  int64_t row_dimension() const noexcept { return row_dimension_; }
  int64_t column_dimension() const noexcept { return column_dimension_; }
  int64_t rows() const noexcept { return rows_; }  // drawn
  int64_t columns() const noexcept { return columns_; }
  int64_t all_rows() const noexcept { return parts(row_dimension_); }
  int64_t all_columns() const noexcept { return parts(column_dimension_); }

  /// "CPU"
  const std::string& platform() const noexcept { return platform_; }
  /// Ids of the devices, ascending.
  const std::vector<int64_t>& devices(int64_t row, int64_t column) const noexcept {
    return devices_[static_cast<size_t>(row * columns_ + column)];
  }
  /// Elements along the dimension that the row or column has; 1 where the array has no such dimension.
  int64_t row_size(int64_t row) const noexcept { return size(row_dimension_, row); }
  int64_t column_size(int64_t column) const noexcept { return size(column_dimension_, column); }
  /// First element.
  int64_t row_begin(int64_t row) const noexcept { return row_dimension_ < 0 ? 0 : domains_.begin(row_dimension_, row); }
  int64_t column_begin(int64_t column) const noexcept {
    return column_dimension_ < 0 ? 0 : domains_.begin(column_dimension_, column);
  }
  /// Whether a last-short cut has left the cell without elements.
  bool is_empty(int64_t row, int64_t column) const noexcept;

  /// What the picture does not show, a sentence a line: dimensions and cells that are left out. Empty when all is
  /// there.
  std::vector<std::string> notes() const;

 private:
  int64_t parts(int64_t dimension) const noexcept;
  int64_t size(int64_t dimension, int64_t cut) const noexcept;

  ShardDomains domains_;
  int64_t row_dimension_ = -1;
  int64_t column_dimension_ = -1;
  int64_t rows_ = 1;
  int64_t columns_ = 1;
  std::string platform_;
  std::vector<std::vector<int64_t>> devices_;
  std::vector<int64_t> idle_devices_;  // without elements
};

}  // namespace artifex_devices
