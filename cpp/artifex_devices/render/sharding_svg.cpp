// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "artifex_devices/render/array_grid.h"
#include "artifex_devices/render/labels.h"
#include "artifex_devices/render/svg.h"
#include "artifex_devices/render/svg_document.h"
#include "artifex_devices/sharding/named_sharding.h"

namespace artifex_devices {
namespace {

constexpr int64_t kMaxCuts = 32;  // drawn of a dimension
constexpr double kMargin = 12;
constexpr double kLine = 20;
constexpr double kMinWidth = 160;
constexpr double kMaxWidth = 640;
constexpr double kMaxHeight = 400;
constexpr double kRowHeight = 28;

/// "dimension 0: 16, cut by x, y"
std::string dimension_label(const Sharding& sharding, const Dims& shape, int64_t dimension) {
  if (dimension < 0) return "";
  std::string label = fmt::format("dimension {}: {}", dimension, shape[dimension]);
  const auto* named = dynamic_cast<const NamedSharding*>(&sharding);
  if (named == nullptr || dimension >= named->spec().rank()) return label;
  std::string axes;
  for (const AxisName axis : named->spec().entries()[static_cast<size_t>(dimension)].axes) {
    axes += (axes.empty() ? "" : ", ") + axis_label(axis);
  }
  return axes.empty() ? label : fmt::format("{}, cut by {}", label, axes);
}

std::string title_of(const Sharding& sharding, const Dims& shape) {
  if (const auto* named = dynamic_cast<const NamedSharding*>(&sharding)) {
    return fmt::format("{} as {} on Mesh({})", to_string(shape), named->spec().to_string(),
                       named->mesh()->abstract_mesh().axes_text());
  }
  return fmt::format("{} on {}", to_string(shape), (*sharding.devices())[0]->to_string());
}

/// Lengths of the parts in pixels: as their elements are to each other, none below `least`.
std::vector<double> lengths(const std::vector<int64_t>& elements, double whole, double least) {
  double total = 0;
  for (const int64_t count : elements) total += static_cast<double>(count);
  std::vector<double> made;
  for (const int64_t count : elements) {
    const double share = total > 0 ? static_cast<double>(count) / total : 1.0 / static_cast<double>(elements.size());
    made.push_back(std::max(share * whole, least));
  }
  return made;
}

}  // namespace

std::string sharding_svg(const Sharding& sharding, const Dims& shape) {
  using Anchor = SvgDocument::Anchor;
  const ArrayGrid grid(sharding, shape, kMaxCuts, kMaxCuts, "sharding_svg");
  std::vector<int64_t> row_sizes;
  std::vector<int64_t> column_sizes;
  for (int64_t row = 0; row < grid.rows(); ++row) row_sizes.push_back(grid.row_size(row));
  for (int64_t column = 0; column < grid.columns(); ++column) column_sizes.push_back(grid.column_size(column));

  // As wide as the labels want, as high as the array's shape says, both within bounds.
  int64_t characters = 1;
  for (int64_t row = 0; row < grid.rows(); ++row) {
    for (int64_t column = 0; column < grid.columns(); ++column) {
      characters = std::max(characters, text_width(devices_label(grid.platform(), grid.devices(row, column), 24)));
    }
  }
  const auto rows = static_cast<double>(grid.rows());
  const auto columns = static_cast<double>(grid.columns());
  const std::string row_label = dimension_label(sharding, shape, grid.row_dimension());
  const std::string column_label = dimension_label(sharding, shape, grid.column_dimension());
  const double width = std::clamp(std::max(columns * (SvgDocument::label_width(characters) + 12),
                                           SvgDocument::label_width(text_width(column_label))),
                                  kMinWidth, kMaxWidth);
  double height = kRowHeight;
  if (grid.row_dimension() >= 0) {
    const auto down = static_cast<double>(std::max<int64_t>(shape[grid.row_dimension()], 1));
    const auto across = static_cast<double>(std::max<int64_t>(shape[grid.column_dimension()], 1));
    const double least =
        std::min(std::max(rows * kRowHeight, SvgDocument::label_width(text_width(row_label))), kMaxHeight);
    height = std::clamp(width * down / across, least, kMaxHeight);
  }
  const std::vector<double> row_lengths = lengths(row_sizes, height, 4);
  const std::vector<double> column_lengths = lengths(column_sizes, width, 4);

  const std::string title = title_of(sharding, shape);
  SvgDocument document(title);
  const double left = kMargin + (grid.row_dimension() < 0 ? 0 : kLine + 4);
  const double top = kMargin + 2 * kLine + 4;
  double y = top;
  double right = left;
  for (int64_t row = 0; row < grid.rows(); ++row) {
    const double row_length = row_lengths[static_cast<size_t>(row)];
    double x = left;
    for (int64_t column = 0; column < grid.columns(); ++column) {
      const double column_length = column_lengths[static_cast<size_t>(column)];
      const auto fitting = static_cast<int64_t>((column_length - 8) / 7);
      std::string range;
      if (grid.row_dimension() >= 0) {
        range = fmt::format("{}:{}, ", grid.row_begin(row), grid.row_begin(row) + grid.row_size(row));
      }
      if (grid.column_dimension() >= 0) {
        range += fmt::format("{}:{}", grid.column_begin(column), grid.column_begin(column) + grid.column_size(column));
      }
      const bool is_empty = grid.is_empty(row, column);
      document.tile(x, y, column_length, row_length, is_empty ? -1 : row * grid.all_columns() + column,
                    devices_label(grid.platform(), grid.devices(row, column), fitting),
                    fmt::format("[{}] {}", range, devices_label(grid.platform(), grid.devices(row, column), 200)));
      x += column_length;
    }
    right = x;
    y += row_length;
  }
  document.text(kMargin, kMargin + kLine / 2, Anchor::kStart, title);
  document.text((left + right) / 2, top - kLine / 2 - 2, Anchor::kMiddle, column_label, true);
  if (grid.row_dimension() >= 0) {
    document.upward_text(kMargin + kLine / 2, (top + y) / 2, row_label);
  }
  double end = y + kMargin;
  double widest = SvgDocument::label_width(text_width(title));
  for (const std::string& note : grid.notes()) {
    document.text(kMargin, end + kLine / 2, Anchor::kStart, note, true);
    widest = std::max(widest, SvgDocument::label_width(text_width(note)));
    end += kLine;
  }
  return document.finish(std::max(right, kMargin + widest) + kMargin, end);
}

}  // namespace artifex_devices
