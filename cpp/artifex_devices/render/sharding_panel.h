// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "artifex_devices/render/array_grid.h"
#include "artifex_devices/render/svg_document.h"
#include "artifex_devices/sharding/sharding.h"

namespace artifex_devices {

/// An array cut into parts, each a tile with its devices, laid out for a picture: of more than two cut dimensions a
/// block for each slice. Refers to the sharding.
class ShardingPanel {
 public:
  /// Pixels that one slice takes at most, and how many slices are drawn.
  struct Limits {
    double width = 640;
    double height = 400;
    int64_t slices = 16;
  };
  /// Throws as Sharding::domains.
  ShardingPanel(const Sharding& sharding, const Dims& shape, const Limits& limits, std::string_view operation);

  double width() const noexcept { return width_; }
  double height() const noexcept { return height_; }
  const ArrayGrid& grid() const noexcept { return grid_; }
  /// With its corner at (x, y).
  void draw(SvgDocument& document, double x, double y) const;

 private:
  void arrange(const Limits& limits);
  void draw_slice(SvgDocument& document, int64_t slice, double x, double y) const;

  ArrayGrid grid_;
  std::string row_label_;
  std::string column_label_;
  std::vector<double> row_lengths_;
  std::vector<double> column_lengths_;
  double cells_width_ = 0;  // of the tiles of one slice
  double cells_height_ = 0;
  int64_t across_ = 1;  // slices beside each other
  double width_ = 0;
  double height_ = 0;
};

}  // namespace artifex_devices
