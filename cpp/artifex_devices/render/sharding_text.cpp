// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/render/sharding_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/render/array_grid.h"
#include "artifex_devices/render/labels.h"
#include "artifex_devices/render/text_table.h"

namespace artifex_devices {
namespace {

constexpr int64_t kMaxRows = 32;
constexpr int64_t kBaseHeight = 10;  // lines of a picture, as in JAX
constexpr double kHeightToWidth = 2.5;

class Picture {
 public:
  Picture(const ArrayGrid& grid, int64_t max_columns, int64_t min_width, double scale)
      : grid_(grid),
        max_columns_(max_columns),
        min_width_(std::clamp<int64_t>(min_width, 2, max_columns)),
        base_height_(static_cast<int64_t>(static_cast<double>(kBaseHeight) * scale)) {}

  std::string draw() const {
    const int64_t columns = grid_.columns();
    const int64_t share = (max_columns_ - columns - 1) / columns;
    std::vector<int64_t> widths;
    for (int64_t column = 0; column < columns; ++column) widths.push_back(std::min(wanted_width(column), share));
    TextTable table(widths);
    for (int64_t row = 0; row < grid_.rows(); ++row) {
      std::vector<std::string> cells;
      for (int64_t column = 0; column < columns; ++column) {
        cells.push_back(label(row, column, share));
      }
      const int64_t height = line_count(row);
      table.add_row(std::move(cells), std::max<int64_t>((height - 2) / 2, 0), std::max<int64_t>((height - 1) / 2, 0));
    }
    return table.to_string();
  }

  /// Whether every label fits in its shortest form.
  bool fits() const {
    const int64_t share = (max_columns_ - grid_.columns() - 1) / grid_.columns();
    for (int64_t row = 0; row < grid_.rows(); ++row) {
      for (int64_t column = 0; column < grid_.columns(); ++column) {
        if (text_width(label(row, column, share)) > share) return false;
      }
    }
    return true;
  }

 private:
  std::string label(int64_t row, int64_t column, int64_t width) const {
    return devices_label(grid_.platform(), grid_.devices(row, column), width);
  }

  /// Size of the array along its rows or columns.
  int64_t array_size(bool along_columns) const {
    return along_columns ? grid_.column_begin(grid_.all_columns()) : grid_.row_begin(grid_.all_rows());
  }

  int64_t wanted_width(int64_t column) const {
    int64_t width = min_width_;
    const auto all = static_cast<double>(array_size(true));
    const bool is_flat = grid_.row_dimension() < 0;
    if ((is_flat || array_size(false) > 0) && all > 0) {
      const double aspect =
          is_flat ? 1 / all : all / static_cast<double>(array_size(false));  // width to height, as in JAX
      const double base = std::min(static_cast<double>(base_height_) * aspect, 1e6);
      const double of_whole = static_cast<double>(grid_.column_size(column)) / all;
      width = static_cast<int64_t>(of_whole * static_cast<double>(static_cast<int64_t>(base)) * kHeightToWidth);
    }
    int64_t inside = std::clamp(width, min_width_, max_columns_) - 2;
    for (int64_t row = 0; row < grid_.rows(); ++row) {
      inside = std::max(inside, text_width(label(row, column, max_columns_)));
    }
    return inside;
  }

  int64_t line_count(int64_t row) const {
    if (grid_.row_dimension() < 0 || array_size(false) == 0) return 1;
    const double of_whole = static_cast<double>(grid_.row_size(row)) / static_cast<double>(array_size(false));
    return static_cast<int64_t>(of_whole * static_cast<double>(base_height_));
  }

  const ArrayGrid& grid_;
  int64_t max_columns_;
  int64_t min_width_;
  int64_t base_height_;
};

}  // namespace

std::string sharding_text(const Sharding& sharding, const Dims& shape, int max_columns, int min_width, double scale) {
  if (!(scale > 0 && scale <= 100)) {
    throw_error("visualize_sharding: scale is {}; expected a number above 0 and at most 100; 1 is JAX's size", scale);
  }
  const int64_t width = std::max(max_columns, 20);
  // A column takes at least two characters. Remove columns until every label fits.
  int64_t columns = width / 2;
  for (;;) {
    const ArrayGrid grid(sharding, shape, {.rows = kMaxRows, .columns = columns}, "visualize_sharding");
    columns = grid.columns();
    const Picture picture(grid, width, min_width, scale);
    if (columns > 1 && !picture.fits()) {
      columns = columns * 3 / 4;
      continue;
    }
    std::string text = picture.draw();
    for (const std::string& note : grid.notes()) text += "\n" + note;
    return text;
  }
}

}  // namespace artifex_devices
