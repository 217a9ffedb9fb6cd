// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/render/array_grid.h"

#include <fmt/format.h>

#include <algorithm>

#include "artifex_devices/render/labels.h"

namespace artifex_devices {

ArrayGrid::ArrayGrid(const Sharding& sharding, const Dims& shape, int64_t max_rows, int64_t max_columns,
                     std::string_view operation)
    : domains_(sharding.domains(shape, operation)), platform_(platform_label(*sharding.devices())) {
  const int64_t rank = shape.size();
  if (rank > 0) column_dimension_ = 0;
  if (rank > 1) {
    int64_t first = 0;
    int64_t second = 1;
    for (int64_t d = 1; d < rank; ++d) {
      if (parts(d) > parts(first)) {
        second = first;
        first = d;
      } else if (d > 1 && parts(d) > parts(second)) {
        second = d;
      }
    }
    row_dimension_ = std::min(first, second);
    column_dimension_ = std::max(first, second);
  }
  rows_ = std::min(all_rows(), std::max<int64_t>(max_rows, 1));
  columns_ = std::min(all_columns(), std::max<int64_t>(max_columns, 1));

  devices_.resize(static_cast<size_t>(rows_ * columns_));
  const TileGrid& grid = sharding.grid();
  const bool has_idle = !domains_.is_even() && std::ranges::count(shape, 0) == 0;
  for (int64_t position = 0; position < grid.positions(); ++position) {
    const int64_t tile = grid.tile(position);
    const int64_t id = (*sharding.devices())[position]->id();
    if (has_idle && domains_.domain(tile).volume() == 0) idle_devices_.push_back(id);
    const int64_t row = row_dimension_ < 0 ? 0 : grid.tile_coordinate(tile, row_dimension_);
    const int64_t column = column_dimension_ < 0 ? 0 : grid.tile_coordinate(tile, column_dimension_);
    if (row >= rows_ || column >= columns_) continue;
    devices_[static_cast<size_t>(row * columns_ + column)].push_back(id);
  }
  for (auto& ids : devices_) std::ranges::sort(ids);
  std::ranges::sort(idle_devices_);
}

int64_t ArrayGrid::parts(int64_t dimension) const noexcept {
  return dimension < 0 ? 1 : domains_.grid().parts(dimension);
}

int64_t ArrayGrid::size(int64_t dimension, int64_t cut) const noexcept {
  return dimension < 0 ? 1 : domains_.begin(dimension, cut + 1) - domains_.begin(dimension, cut);
}

bool ArrayGrid::is_empty(int64_t row, int64_t column) const noexcept {
  const auto ran_out = [&](int64_t dimension, int64_t cut) {
    return dimension >= 0 && domains_.shape()[dimension] > 0 && size(dimension, cut) == 0;
  };
  return ran_out(row_dimension_, row) || ran_out(column_dimension_, column);
}

std::vector<std::string> ArrayGrid::notes() const {
  std::vector<std::string> notes;
  const Dims& shape = domains_.shape();
  if (shape.size() > 2) {
    std::string note = fmt::format("rows are dimension {} and columns dimension {} of {}", row_dimension_,
                                   column_dimension_, to_string(shape));
    for (int64_t d = 0; d < domains_.grid().parts().size(); ++d) {
      if (d == row_dimension_ || d == column_dimension_ || parts(d) == 1) continue;
      note += fmt::format("; dimension {} is cut into {} parts", d, parts(d));
    }
    notes.push_back(std::move(note));
  }
  if (rows_ < all_rows() || columns_ < all_columns()) {
    notes.push_back(
        fmt::format("shown: {} of {} rows and {} of {} columns of parts", rows_, all_rows(), columns_, all_columns()));
  }
  if (!idle_devices_.empty()) notes.push_back("without elements: " + devices_label(platform_, idle_devices_, 60));
  return notes;
}

}  // namespace artifex_devices
