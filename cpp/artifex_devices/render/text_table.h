// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace artifex_devices {

/// A table in box-drawing characters with centred cells. No newline at the end.
class TextTable {
 public:
  /// `widths`: characters inside each column. A wider cell widens its column.
  explicit TextTable(std::vector<int64_t> widths) : widths_(std::move(widths)) {}

  /// One cell for each column. `above` and `below` are numbers of empty lines around the text. `rule` draws a line
  /// under the row.
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
