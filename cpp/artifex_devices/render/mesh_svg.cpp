// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "artifex_devices/render/labels.h"
#include "artifex_devices/render/mesh_grid.h"
#include "artifex_devices/render/svg.h"
#include "artifex_devices/render/svg_document.h"

namespace artifex_devices {
namespace {

constexpr double kCellHeight = 30;

}  // namespace

std::string mesh_svg(const Mesh& mesh, int max_cells) {
  using Anchor = SvgDocument::Anchor;
  if (mesh.empty()) {
    const std::string title = mesh.to_string() + ": no devices";
    SvgDocument document(title);
    document.text(SvgDocument::kMargin, SvgDocument::kMargin + SvgDocument::kLineHeight / 2, Anchor::kStart, title);
    return document.finish(SvgDocument::label_width(text_width(title)) + 2 * SvgDocument::kMargin,
                           SvgDocument::kLineHeight + 2 * SvgDocument::kMargin);
  }
  const MeshGrid grid(mesh, max_cells);
  const DeviceList& devices = *mesh.devices();
  SvgDocument document(grid.title());

  int64_t label_characters = 4;
  int64_t row_characters = 1;
  for (int64_t row = 0; row < grid.rows(); ++row) {
    row_characters = std::max(row_characters, text_width(grid.row_label(row)));
    for (int64_t column = 0; column < grid.columns(); ++column) {
      const int64_t position = grid.position(row, column);
      if (position < 0) continue;
      label_characters =
          std::max(label_characters, text_width(fmt::format("{}", devices[Position(position)]->id().number())));
    }
  }
  for (int64_t column = 0; column < grid.columns(); ++column) {
    label_characters = std::max(label_characters, text_width(grid.column_label(column)));
  }
  const double cell_width = SvgDocument::label_width(label_characters);
  const double left = SvgDocument::kMargin + SvgDocument::kLineHeight + SvgDocument::label_width(row_characters);
  const double top = SvgDocument::kMargin + 3 * SvgDocument::kLineHeight;
  const double right = left + cell_width * static_cast<double>(grid.columns());
  const double bottom = top + kCellHeight * static_cast<double>(grid.rows());

  document.text(SvgDocument::kMargin, SvgDocument::kMargin + SvgDocument::kLineHeight / 2, Anchor::kStart,
                grid.title());
  document.text((left + right) / 2, top - 1.5 * SvgDocument::kLineHeight, Anchor::kMiddle, grid.column_axes(), true);
  document.upward_text(SvgDocument::kMargin + SvgDocument::kLineHeight / 2, (top + bottom) / 2, grid.row_axis());
  for (int64_t column = 0; column < grid.columns(); ++column) {
    document.text(left + cell_width * (static_cast<double>(column) + 0.5), top - SvgDocument::kLineHeight / 2,
                  Anchor::kMiddle, grid.column_label(column), true);
  }
  for (int64_t row = 0; row < grid.rows(); ++row) {
    const double y = top + kCellHeight * static_cast<double>(row);
    document.text(left - 6, y + kCellHeight / 2, Anchor::kEnd, grid.row_label(row), true);
    for (int64_t column = 0; column < grid.columns(); ++column) {
      const int64_t position = grid.position(row, column);
      if (position < 0) continue;
      const Device& device = *devices[Position(position)];
      document.tile(left + cell_width * static_cast<double>(column), y, cell_width, kCellHeight,
                    device.arena_index().number(), fmt::format("{}", device.id().number()),
                    fmt::format("{}, memory {}", device.to_string(), device.arena_index().number()));
    }
  }

  double end = bottom + SvgDocument::kMargin;
  const auto add_note = [&](const std::string& note) {
    document.text(left, end + SvgDocument::kLineHeight / 2, Anchor::kStart, note, true);
    end += SvgDocument::kLineHeight;
  };
  if (const std::string note = grid.note(); !note.empty()) add_note(note);
  if (!devices.on_one_arena()) add_note("colours: memory that devices share");
  const double width = std::max(right, SvgDocument::label_width(text_width(grid.title()))) + SvgDocument::kMargin;
  return document.finish(width, end);
}

}  // namespace artifex_devices
