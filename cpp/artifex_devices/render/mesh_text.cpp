// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/render/mesh_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "artifex_devices/render/labels.h"
#include "artifex_devices/render/mesh_grid.h"
#include "artifex_devices/render/text_table.h"

namespace artifex_devices {

std::string mesh_text(const Mesh& mesh, int max_cells) {
  if (mesh.empty()) return mesh.to_string() + ": no devices";
  const MeshGrid grid(mesh, max_cells);
  const DeviceList& devices = *mesh.devices();
  std::string text = grid.title() + "\n";
  const auto padded = [](const std::string& label) { return fmt::format(" {} ", label); };
  TextTable table(std::vector<int64_t>(static_cast<size_t>(grid.columns()) + 1, 3));
  if (mesh.abstract_mesh().rank() > 0) {
    std::vector<std::string> header{
        padded(grid.row_axis().empty() ? grid.column_axes() : grid.row_axis() + " \\ " + grid.column_axes())};
    for (int64_t column = 0; column < grid.columns(); ++column) header.push_back(padded(grid.column_label(column)));
    table.add_row(std::move(header));
  }
  for (int64_t row = 0; row < grid.rows(); ++row) {
    std::vector<std::string> cells{padded(grid.row_label(row))};
    for (int64_t column = 0; column < grid.columns(); ++column) {
      const int64_t position = grid.position(row, column);
      cells.push_back(position < 0 ? "" : padded(fmt::format("{}", devices[Position(position)]->id().number())));
    }
    table.add_row(std::move(cells), 0, 0, false);
  }
  text += table.to_string();
  if (const std::string note = grid.note(); !note.empty()) text += "\n" + note;
  return text;
}

}  // namespace artifex_devices
