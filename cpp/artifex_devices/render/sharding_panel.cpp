// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/render/sharding_panel.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "artifex_devices/render/labels.h"
#include "artifex_devices/sharding/named_sharding.h"

namespace artifex_devices {
namespace {

constexpr int64_t kMaxParts = 32;  // drawn parts of a dimension
constexpr double kSliceGap = 16;
constexpr double kMinWidth = 160;
constexpr double kSliceRowHeight = 28;
constexpr double kSlicesAcross = 900;  // width of a row of slices in pixels

/// "dimension 0: 16, sharded over x, y"
std::string dimension_label(const Sharding& sharding, const Dims& shape, int64_t dimension) {
  if (dimension < 0) return "";
  std::string label = fmt::format("dimension {}: {}", dimension, shape[dimension]);
  const auto* named = dynamic_cast<const NamedSharding*>(&sharding);
  if (named == nullptr || dimension >= named->spec().rank()) return label;
  std::string axes;
  for (const AxisName axis : named->spec().entries()[static_cast<size_t>(dimension)].axes) {
    axes += (axes.empty() ? "" : ", ") + axis_label(axis);
  }
  return axes.empty() ? label : fmt::format("{}, sharded over {}", label, axes);
}

/// Lengths of the parts in pixels, proportional to their elements but at least 4.
std::vector<double> lengths(const std::vector<int64_t>& elements, double whole) {
  double total = 0;
  for (const int64_t count : elements) total += static_cast<double>(count);
  std::vector<double> pixels;
  for (const int64_t count : elements) {
    const double share = total > 0 ? static_cast<double>(count) / total : 1.0 / static_cast<double>(elements.size());
    pixels.push_back(std::max(share * whole, 4.0));
  }
  return pixels;
}

double label_pixels(const std::string& label) { return SvgDocument::label_width(text_width(label)); }

}  // namespace

ShardingPanel::ShardingPanel(const Sharding& sharding, const Dims& shape, const Limits& limits,
                             std::string_view operation)
    : grid_(sharding, shape, {.rows = kMaxParts, .columns = kMaxParts, .slices = limits.slices}, operation),
      row_label_(dimension_label(sharding, shape, grid_.row_dimension())),
      column_label_(dimension_label(sharding, shape, grid_.column_dimension())) {
  arrange(limits);
}

// The labels determine the width, the array's shape the height, both within the limits.
void ShardingPanel::arrange(const Limits& limits) {
  int64_t characters = 1;
  double caption = 0;
  for (int64_t slice = 0; slice < grid_.slices(); ++slice) {
    caption = std::max(caption, label_pixels(grid_.slice_label(slice)));
    for (int64_t row = 0; row < grid_.rows(); ++row) {
      for (int64_t column = 0; column < grid_.columns(); ++column) {
        const std::string label = devices_label(grid_.platform(), grid_.devices(row, column, slice), 24);
        characters = std::max(characters, text_width(label));
      }
    }
  }
  const auto rows = static_cast<double>(grid_.rows());
  const auto columns = static_cast<double>(grid_.columns());
  const double wanted = std::max({columns * (SvgDocument::label_width(characters) + 12), label_pixels(column_label_),
                                  grid_.slices() > 1 ? caption : 0.0});
  const double width = std::clamp(wanted, std::min(kMinWidth, limits.width), limits.width);
  double height = kSliceRowHeight;
  if (grid_.row_dimension() >= 0) {
    const auto down = static_cast<double>(std::max<int64_t>(grid_.row_begin(grid_.all_rows()), 1));
    const auto across = static_cast<double>(std::max<int64_t>(grid_.column_begin(grid_.all_columns()), 1));
    const double least = std::min(std::max(rows * kSliceRowHeight, label_pixels(row_label_)), limits.height);
    height = std::clamp(width * down / across, least, limits.height);
  }
  std::vector<int64_t> row_sizes;
  std::vector<int64_t> column_sizes;
  for (int64_t row = 0; row < grid_.rows(); ++row) row_sizes.push_back(grid_.row_size(row));
  for (int64_t column = 0; column < grid_.columns(); ++column) column_sizes.push_back(grid_.column_size(column));
  row_lengths_ = lengths(row_sizes, height);
  column_lengths_ = lengths(column_sizes, width);
  cells_width_ = std::accumulate(column_lengths_.begin(), column_lengths_.end(), 0.0);
  cells_height_ = std::accumulate(row_lengths_.begin(), row_lengths_.end(), 0.0);

  const double left = row_label_.empty() ? 0 : SvgDocument::kLineHeight + 4;
  const double top = SvgDocument::kLineHeight + 4;
  if (grid_.slices() == 1) {
    width_ = left + cells_width_;
    height_ = top + cells_height_;
    return;
  }
  const double block = std::max(cells_width_, caption) + kSliceGap;
  across_ = SvgDocument::boxes_across(grid_.slices(), block, cells_height_ + SvgDocument::kLineHeight + kSliceGap,
                                      kSlicesAcross);
  const int64_t down = (grid_.slices() + across_ - 1) / across_;
  width_ = left + static_cast<double>(across_) * block - kSliceGap;
  height_ = top + static_cast<double>(down) * (cells_height_ + SvgDocument::kLineHeight + kSliceGap) - kSliceGap;
}

void ShardingPanel::draw(SvgDocument& document, double x, double y) const {
  using Anchor = SvgDocument::Anchor;
  const double left = x + (row_label_.empty() ? 0 : SvgDocument::kLineHeight + 4);
  const double top = y + SvgDocument::kLineHeight + 4;
  document.text((left + x + width_) / 2, top - SvgDocument::kLineHeight / 2 - 2, Anchor::kMiddle, column_label_, true);
  if (!row_label_.empty()) document.upward_text(x + SvgDocument::kLineHeight / 2, (top + y + height_) / 2, row_label_);
  if (grid_.slices() == 1) {
    draw_slice(document, 0, left, top);
    return;
  }
  const double block = (x + width_ - left + kSliceGap) / static_cast<double>(across_);
  for (int64_t slice = 0; slice < grid_.slices(); ++slice) {
    const double block_x = left + static_cast<double>(slice % across_) * block;
    const double block_y =
        top + static_cast<double>(slice / across_) * (cells_height_ + SvgDocument::kLineHeight + kSliceGap);
    document.text(block_x, block_y + SvgDocument::kLineHeight / 2, Anchor::kStart, grid_.slice_label(slice));
    draw_slice(document, slice, block_x, block_y + SvgDocument::kLineHeight);
  }
}

void ShardingPanel::draw_slice(SvgDocument& document, int64_t slice, double left, double y) const {
  for (int64_t row = 0; row < grid_.rows(); ++row) {
    const double row_length = row_lengths_[static_cast<size_t>(row)];
    double x = left;
    for (int64_t column = 0; column < grid_.columns(); ++column) {
      const double column_length = column_lengths_[static_cast<size_t>(column)];
      const auto fitting = static_cast<int64_t>((column_length - 8) / 7);
      std::string range;
      if (grid_.row_dimension() >= 0) {
        range = fmt::format("{}:{}, ", grid_.row_begin(row), grid_.row_begin(row) + grid_.row_size(row));
      }
      if (grid_.column_dimension() >= 0) {
        range +=
            fmt::format("{}:{}", grid_.column_begin(column), grid_.column_begin(column) + grid_.column_size(column));
      }
      const std::string of_slice = grid_.slice_label(slice);
      const std::vector<int64_t>& devices = grid_.devices(row, column, slice);
      const int64_t colour = grid_.is_empty(row, column, slice) ? -1 : grid_.part(row, column, slice);
      std::string label = devices_label(grid_.platform(), devices, fitting);
      if (devices.size() == 1 && text_width(label) > fitting) label = fmt::format("{}", devices[0]);
      document.tile(x, y, column_length, row_length, colour, label,
                    fmt::format("[{}] {}{}{}", range, of_slice, of_slice.empty() ? "" : ": ",
                                devices_label(grid_.platform(), devices, 200)));
      x += column_length;
    }
    y += row_length;
  }
}

}  // namespace artifex_devices
