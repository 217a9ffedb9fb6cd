// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace artifex_devices {

/// Cells in a frame of box-drawing characters, each in the middle of its place. No line end at the end.
class BoxTable {
 public:
  /// One number a column: the characters inside; a wider cell widens its column.
  explicit BoxTable(std::vector<int64_t> widths) : widths_(std::move(widths)) {}

  /// One cell a column. `above` and `below` are empty lines around the text; `rule` draws a line under the row.
  void add_row(std::vector<std::string> cells, int64_t above = 0, int64_t below = 0, bool rule = true);
  std::string to_string() const;

 private:
  struct Row {
    std::vector<std::string> cells;
    int64_t above;
    int64_t below;
    bool rule;
  };
  std::vector<int64_t> widths_;
  std::vector<Row> rows_;
};

}  // namespace artifex_devices
