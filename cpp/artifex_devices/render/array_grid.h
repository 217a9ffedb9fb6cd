// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "artifex_devices/base/shape.h"
#include "artifex_devices/sharding/sharding.h"

namespace artifex_devices {

/// The two dimensions of an array that a picture shows, and the devices that hold each part. Rank 1 is one row, rank 0
/// one cell. Of higher ranks the two dimensions with most parts are shown, in their order. Each combination of parts of
/// the other sharded dimensions is a slice.
/// Example: (16, 16) with P(None, 'x') on mesh {x: 2, y: 4} is 1 row and 2 columns; cell (0, 1) is devices 4 to 7.
class ArrayGrid {
 public:
  /// Largest numbers that are drawn. With 0 slices, all slices are merged into one.
  struct Limits {
    int64_t rows = 1;
    int64_t columns = 1;
    int64_t slices = 0;
  };
  /// Cells beyond the limits are left out. Throws as Sharding::domains.
  ArrayGrid(const Sharding& sharding, const Dims& shape, const Limits& limits, std::string_view operation);

  /// Dimension of the array along the rows and columns; -1 if the array has no such dimension.
  int64_t row_dimension() const noexcept { return row_dimension_; }
  int64_t column_dimension() const noexcept { return column_dimension_; }
  /// Numbers of drawn rows, columns and slices.
  int64_t rows() const noexcept { return rows_; }
  int64_t columns() const noexcept { return columns_; }
  int64_t slices() const noexcept { return slices_; }
  int64_t all_rows() const noexcept { return parts(row_dimension_); }
  int64_t all_columns() const noexcept { return parts(column_dimension_); }

  /// "CPU"
  const std::string& platform() const noexcept { return platform_; }
  /// Ids of the devices, ascending.
  const std::vector<int64_t>& devices(int64_t row, int64_t column, int64_t slice = 0) const noexcept {
    return devices_[static_cast<size_t>((slice * rows_ + row) * columns_ + column)];
  }
  /// Index of a part among all parts, drawn or not.
  int64_t part(int64_t row, int64_t column, int64_t slice = 0) const noexcept {
    return (slice * all_rows() + row) * all_columns() + column;
  }
  /// Index of the part that contains a tile of the sharding.
  int64_t part_of_tile(TileId tile) const noexcept;
  /// "dimension 1: 0:8"; "" for a single slice.
  std::string slice_label(int64_t slice) const;
  /// Number of elements of the row or column along its dimension; 1 where the array has no such dimension.
  int64_t row_size(int64_t row) const noexcept { return size(row_dimension_, row); }
  int64_t column_size(int64_t column) const noexcept { return size(column_dimension_, column); }
  /// Index of the first element.
  int64_t row_begin(int64_t row) const noexcept { return row_dimension_ < 0 ? 0 : domains_.begin(row_dimension_, row); }
  int64_t column_begin(int64_t column) const noexcept {
    return column_dimension_ < 0 ? 0 : domains_.begin(column_dimension_, column);
  }
  /// Whether uneven sharding left the cell without elements.
  bool is_empty(int64_t row, int64_t column, int64_t slice = 0) const noexcept;

  /// Notes on what the picture omits (dimensions, cells), one sentence for each line. Empty when nothing is omitted.
  std::vector<std::string> notes() const;

 private:
  int64_t slice_of_tile(TileId tile) const noexcept;
  int64_t slice_part(int64_t slice, size_t which) const noexcept;  // part of slice_dimensions_[which]
  int64_t parts(int64_t dimension) const noexcept;
  int64_t size(int64_t dimension, int64_t part) const noexcept;

  ShardDomains domains_;
  int64_t row_dimension_ = -1;
  int64_t column_dimension_ = -1;
  int64_t rows_ = 1;
  int64_t columns_ = 1;
  int64_t slices_ = 1;
  int64_t all_slices_ = 1;
  std::vector<int64_t> slice_dimensions_;  // sharded, neither rows nor columns; empty where slices are merged
  std::string platform_;
  std::vector<std::vector<int64_t>> devices_;
  std::vector<int64_t> idle_devices_;  // devices without elements
};

}  // namespace artifex_devices
