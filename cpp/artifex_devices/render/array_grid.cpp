// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/render/array_grid.h"

#include <fmt/format.h>

#include <algorithm>

#include "artifex_devices/render/labels.h"

namespace artifex_devices {
namespace {

constexpr int64_t kMaxCells = 1024;  // of all slices

}  // namespace

ArrayGrid::ArrayGrid(const Sharding& sharding, const Dims& shape, const Limits& limits, std::string_view operation)
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
  rows_ = std::min(all_rows(), std::max<int64_t>(limits.rows, 1));
  columns_ = std::min(all_columns(), std::max<int64_t>(limits.columns, 1));
  for (int64_t d = 0; d < rank && limits.slices > 0; ++d) {
    if (d == row_dimension_ || d == column_dimension_ || parts(d) == 1) continue;
    slice_dimensions_.push_back(d);
    all_slices_ *= parts(d);
  }
  const int64_t most = std::min(limits.slices, kMaxCells / (rows_ * columns_));
  slices_ = std::clamp<int64_t>(all_slices_, 1, std::max<int64_t>(most, 1));

  devices_.resize(static_cast<size_t>(slices_ * rows_ * columns_));
  const TileGrid& grid = sharding.grid();
  const bool has_idle = !domains_.is_even() && std::ranges::count(shape, 0) == 0;
  for (const Position position : sharding.positions()) {
    const TileId tile = grid.tile(position);
    const int64_t id = sharding.device(position).id().number();
    if (has_idle && domains_.domain(tile).volume() == 0) idle_devices_.push_back(id);
    const int64_t row = row_dimension_ < 0 ? 0 : grid.tile_coordinate(tile, row_dimension_);
    const int64_t column = column_dimension_ < 0 ? 0 : grid.tile_coordinate(tile, column_dimension_);
    const int64_t slice = slice_of_tile(tile);
    if (row >= rows_ || column >= columns_ || slice >= slices_) continue;
    devices_[static_cast<size_t>((slice * rows_ + row) * columns_ + column)].push_back(id);
  }
  for (auto& ids : devices_) std::ranges::sort(ids);
  std::ranges::sort(idle_devices_);
}

int64_t ArrayGrid::parts(int64_t dimension) const noexcept {
  return dimension < 0 ? 1 : domains_.grid().parts(dimension);
}

int64_t ArrayGrid::size(int64_t dimension, int64_t part) const noexcept {
  return dimension < 0 ? 1 : domains_.begin(dimension, part + 1) - domains_.begin(dimension, part);
}

int64_t ArrayGrid::slice_of_tile(TileId tile) const noexcept {
  int64_t slice = 0;
  for (const int64_t d : slice_dimensions_) slice = slice * parts(d) + domains_.grid().tile_coordinate(tile, d);
  return slice;
}

int64_t ArrayGrid::slice_part(int64_t slice, size_t which) const noexcept {
  for (size_t later = slice_dimensions_.size(); --later > which;) slice /= parts(slice_dimensions_[later]);
  return slice % parts(slice_dimensions_[which]);
}

int64_t ArrayGrid::part_of_tile(TileId tile) const noexcept {
  const TileGrid& grid = domains_.grid();
  const auto part_along = [&](int64_t dimension) { return dimension < 0 ? 0 : grid.tile_coordinate(tile, dimension); };
  return part(part_along(row_dimension_), part_along(column_dimension_), slice_of_tile(tile));
}

std::string ArrayGrid::slice_label(int64_t slice) const {
  std::string label;
  for (size_t which = 0; which < slice_dimensions_.size(); ++which) {
    const int64_t dimension = slice_dimensions_[which];
    const int64_t part = slice_part(slice, which);
    label += fmt::format("{}dimension {}: {}:{}", which == 0 ? "" : ", ", dimension, domains_.begin(dimension, part),
                         domains_.begin(dimension, part + 1));
  }
  return label;
}

bool ArrayGrid::is_empty(int64_t row, int64_t column, int64_t slice) const noexcept {
  const auto is_past_end = [&](int64_t dimension, int64_t part) {
    return dimension >= 0 && domains_.shape()[dimension] > 0 && size(dimension, part) == 0;
  };
  for (size_t which = 0; which < slice_dimensions_.size(); ++which) {
    if (is_past_end(slice_dimensions_[which], slice_part(slice, which))) return true;
  }
  return is_past_end(row_dimension_, row) || is_past_end(column_dimension_, column);
}

std::vector<std::string> ArrayGrid::notes() const {
  std::vector<std::string> notes;
  const Dims& shape = domains_.shape();
  if (shape.size() > 2) {
    std::string note = fmt::format("rows are dimension {} and columns dimension {} of {}", row_dimension_,
                                   column_dimension_, to_string(shape));
    for (int64_t d = 0; d < domains_.grid().parts().size(); ++d) {
      if (!slice_dimensions_.empty()) break;
      if (d == row_dimension_ || d == column_dimension_ || parts(d) == 1) continue;
      note += fmt::format("; dimension {} is split into {} parts", d, parts(d));
    }
    notes.push_back(std::move(note));
  }
  if (rows_ < all_rows() || columns_ < all_columns()) {
    notes.push_back(
        fmt::format("shown: {} of {} rows and {} of {} columns of parts", rows_, all_rows(), columns_, all_columns()));
  }
  if (slices_ < all_slices_) notes.push_back(fmt::format("shown: {} of {} slices", slices_, all_slices_));
  if (!idle_devices_.empty()) notes.push_back("without elements: " + devices_label(platform_, idle_devices_, 60));
  return notes;
}

}  // namespace artifex_devices
