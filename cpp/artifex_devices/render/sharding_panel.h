// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "artifex_devices/render/array_grid.h"
#include "artifex_devices/render/svg_document.h"
#include "artifex_devices/sharding/sharding.h"

namespace artifex_devices {

/// A picture of a sharded array: one tile with its devices for each part. With more than two sharded dimensions, one
/// block for each slice. The sharding must outlive the panel.
class ShardingPanel {
 public:
  /// Largest size of one slice in pixels, and largest number of drawn slices.
  struct Limits {
    double width = 640;
    double height = 400;
    int64_t slices = 16;
  };
  /// Throws as Sharding::domains does.
  ShardingPanel(const Sharding& sharding, const Dims& shape, const Limits& limits, std::string_view operation);

  double width() const noexcept { return width_; }
  double height() const noexcept { return height_; }
  const ArrayGrid& grid() const noexcept { return grid_; }
  /// Draws the panel with its upper left corner at (x, y).
  void draw(SvgDocument& document, double x, double y) const;

 private:
  void arrange(const Limits& limits);
  void draw_slice(SvgDocument& document, int64_t slice, double x, double y) const;

  ArrayGrid grid_;
  std::string row_label_;
  std::string column_label_;
  std::vector<double> row_lengths_;
  std::vector<double> column_lengths_;
  double cells_width_ = 0;  // of all tiles of one slice
  double cells_height_ = 0;
  int64_t across_ = 1;  // slices in a row
  double width_ = 0;
  double height_ = 0;
};

}  // namespace artifex_devices
