// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/render/text_table.h"

#include <algorithm>

#include "artifex_devices/render/labels.h"

namespace artifex_devices {

void TextTable::add_row(std::vector<std::string> cells, int64_t above, int64_t below, bool rule) {
  for (size_t i = 0; i < widths_.size(); ++i) widths_[i] = std::max(widths_[i], text_width(cells[i]));
  rows_.push_back({std::move(cells), above, below, rule});
}

std::string TextTable::to_string() const {
  const auto line = [&](const char* left, const char* middle, const char* right) {
    std::string text = left;
    for (size_t i = 0; i < widths_.size(); ++i) {
      if (i > 0) text += middle;
      for (int64_t n = 0; n < widths_[i]; ++n) text += "─";
    }
    return text + right;
  };
  const auto content = [&](const std::vector<std::string>* cells) {
    std::string text;
    for (size_t i = 0; i < widths_.size(); ++i) {
      const std::string cell = cells ? (*cells)[i] : "";
      const int64_t space = widths_[i] - text_width(cell);
      text += "│" + std::string(static_cast<size_t>(space / 2), ' ') + cell +
              std::string(static_cast<size_t>(space - space / 2), ' ');
    }
    return text + "│\n";
  };
  std::string text = line("┌", "┬", "┐") + "\n";
  for (size_t r = 0; r < rows_.size(); ++r) {
    const Row& row = rows_[r];
    for (int64_t n = 0; n < row.above; ++n) text += content(nullptr);
    text += content(&row.cells);
    for (int64_t n = 0; n < row.below; ++n) text += content(nullptr);
    if (row.rule && r + 1 < rows_.size()) text += line("├", "┼", "┤") + "\n";
  }
  return text + line("└", "┴", "┘");
}

}  // namespace artifex_devices
