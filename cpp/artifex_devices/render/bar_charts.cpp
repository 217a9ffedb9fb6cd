// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/render/bar_charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "artifex_devices/base/seconds_text.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/render/labels.h"
#include "artifex_devices/render/svg_document.h"

namespace artifex_devices {
namespace {

using ChartAnchor = SvgDocument::Anchor;

constexpr double kChartTop = 44;
constexpr double kLimitTextHeight = 16;  // of the text above a limit, below the title
constexpr double kChartWidth = 560;
constexpr double kBarHeight = 20;
constexpr double kBarStep = 26;
constexpr int64_t kChartNoteWidth = 100;  // characters
constexpr size_t kMostBars = 256;
constexpr size_t kMostKinds = 16;
constexpr size_t kMostTiles = size_t{1} << 14;

double label_space(const std::vector<std::string>& labels) {
  double width = 0;
  for (const std::string& label : labels) width = std::max(width, SvgDocument::label_width(text_width(label)));
  return SvgDocument::kMargin + width;
}

/// The path of a vertical line at `x` from `top` to `bottom`, with a gap where the text of a bar is. `texts` are the
/// beginning and the end of each bar's text.
std::string line_beside_texts(double x, double top, double bottom, double first_bar,
                              const std::vector<std::pair<double, double>>& texts) {
  std::string path;
  double from = top;
  for (size_t i = 0; i < texts.size(); ++i) {
    if (x < texts[i].first || x > texts[i].second) continue;
    const double bar = first_bar + kBarStep * static_cast<double>(i);
    path += fmt::format("M{:g} {:g}V{:g}", x, from, bar);
    from = bar + kBarHeight;
  }
  return path + fmt::format("M{:g} {:g}V{:g}", x, from, bottom);
}

/// A legend and notes below the picture, from `top` on; returns where they end. `width` grows.
double add_legend(SvgDocument& document, const std::vector<std::string>& kinds, const std::vector<std::string>& notes,
                  double left, double top, double& width) {
  double x = left;
  double y = top;
  for (size_t i = 0; i < kinds.size(); ++i) {
    const double space = 26 + SvgDocument::label_width(text_width(kinds[i]));
    if (x > left && x + space > left + kChartWidth) {
      x = left;
      y += SvgDocument::kLineHeight;
    }
    document.tile(x, y + 4, 14, 12, static_cast<int64_t>(i), "", "");
    document.text(x + 20, y + SvgDocument::kLineHeight / 2, ChartAnchor::kStart, kinds[i]);
    x += space;
    width = std::max(width, x);
  }
  if (!kinds.empty()) y += SvgDocument::kLineHeight;
  for (const std::string& note : notes) {
    for (const std::string& line : wrapped(note, kChartNoteWidth)) {
      document.text(left, y + SvgDocument::kLineHeight / 2, ChartAnchor::kStart, line, true);
      width = std::max(width, left + SvgDocument::label_width(text_width(line)));
      y += SvgDocument::kLineHeight;
    }
  }
  return y;
}

void add_title(SvgDocument& document, const std::string& title, double& width) {
  document.text(SvgDocument::kMargin, SvgDocument::kMargin + SvgDocument::kLineHeight / 2, ChartAnchor::kStart, title);
  width = std::max(width, SvgDocument::kMargin + SvgDocument::label_width(text_width(title)));
}

double sum_of(const ChartBar& bar) { return std::accumulate(bar.parts.begin(), bar.parts.end(), 0.0); }

void check_chart(const BarChart& chart) {
  const auto is_right = [&](const ChartBar& bar) {
    return bar.parts.size() == chart.kinds.size() && bar.texts.size() == bar.parts.size() &&
           std::ranges::all_of(bar.parts, [](double part) { return std::isfinite(part) && part >= 0; });
  };
  if (chart.bars.empty() || chart.bars.size() > kMostBars || chart.kinds.size() > kMostKinds ||
      !std::ranges::all_of(chart.bars, is_right) || !std::isfinite(chart.limit)) {
    throw_error(
        "to_svg: {} bars of {} kinds; expected 1 to {} bars, at most {} kinds, and for each bar as many finite numbers of "
        "0 or more and texts as kinds",
        chart.bars.size(), chart.kinds.size(), kMostBars, kMostKinds);
  }
}

}  // namespace

std::string bar_chart_svg(const BarChart& chart) {
  check_chart(chart);
  std::vector<std::string> labels;
  double longest = chart.limit;
  double sum = 0;
  for (const ChartBar& bar : chart.bars) {
    labels.push_back(bar.label);
    if (!bar.is_aside) sum += sum_of(bar);
    longest = std::max(longest, chart.is_waterfall && !bar.is_aside ? sum : sum_of(bar));
  }
  const double left = label_space(labels);
  const double scale = longest > 0 ? kChartWidth / longest : 0;
  SvgDocument document(chart.title);
  double width = left + kChartWidth + 90;
  add_title(document, chart.title, width);
  const double top = kChartTop + (chart.limit > 0 ? kLimitTextHeight : 0);
  double y = top;
  double start = 0;
  std::vector<std::pair<double, double>> texts;
  for (const ChartBar& bar : chart.bars) {
    document.text(left - 6, y + kBarHeight / 2, ChartAnchor::kEnd, bar.label);
    double x = left + (bar.is_aside ? 0 : start * scale);
    for (size_t i = 0; i < bar.parts.size(); ++i) {
      if (bar.parts[i] <= 0) continue;
      const double length = std::max(bar.parts[i] * scale, 0.5);
      document.tile(x, y, length, kBarHeight, bar.is_aside ? -1 : static_cast<int64_t>(i), "", bar.texts[i]);
      x += bar.parts[i] * scale;
    }
    document.text(x + 6, y + kBarHeight / 2, ChartAnchor::kStart, bar.total);
    texts.emplace_back(x, x + SvgDocument::label_width(text_width(bar.total)));
    width = std::max(width, texts.back().second);
    if (chart.is_waterfall && !bar.is_aside) start += sum_of(bar);
    y += kBarStep;
  }
  if (chart.limit > 0) {
    const double x = left + chart.limit * scale;
    document.lines(line_beside_texts(x, top - 6, y, top, texts), {.width = 2, .is_dashed = true});
    const double half = SvgDocument::label_width(text_width(chart.limit_text)) / 2;
    const double middle = std::max(x, SvgDocument::kMargin + half);  // not beyond the left edge
    document.text(middle, top - 14, ChartAnchor::kMiddle, chart.limit_text, true);
    width = std::max(width, middle + half);
  }
  const std::vector<std::string> kinds = chart.kinds.size() > 1 ? chart.kinds : std::vector<std::string>{};
  const double end = add_legend(document, kinds, chart.notes, left, y + 8, width);
  return document.finish(width + SvgDocument::kMargin, end + SvgDocument::kMargin);
}

std::string schedule_svg(const std::string& title, const std::vector<std::string>& rows,
                         const std::vector<std::string>& kinds, const std::vector<ScheduleTile>& tiles,
                         const std::vector<std::string>& notes) {
  double last = 0;
  bool is_right = !tiles.empty() && tiles.size() <= kMostTiles && rows.size() <= kMostBars;
  for (const ScheduleTile& tile : tiles) {
    is_right = is_right && std::isfinite(tile.end) && tile.start >= 0 && tile.end > tile.start && tile.row >= 0 &&
               tile.row < static_cast<int64_t>(rows.size());
    last = std::max(last, tile.end);
  }
  if (!is_right) {
    throw_error(
        "to_svg: {} tiles in {} rows; expected 1 to {} tiles, at most {} rows, each tile in a row, with an end after its "
        "start",
        tiles.size(), rows.size(), kMostTiles, kMostBars);
  }
  const double left = label_space(rows);
  const double scale = kChartWidth * 1.4 / last;
  SvgDocument document(title);
  double width = left + kChartWidth * 1.4;
  add_title(document, title, width);
  for (size_t i = 0; i < rows.size(); ++i) {
    const double y = kChartTop + kBarStep * static_cast<double>(i);
    document.text(left - 6, y + kBarHeight / 2, ChartAnchor::kEnd, rows[i]);
    document.box(left, y, kChartWidth * 1.4, kBarHeight, "");
  }
  for (const ScheduleTile& tile : tiles) {
    const double y = kChartTop + kBarStep * static_cast<double>(tile.row);
    document.tile(left + tile.start * scale, y, (tile.end - tile.start) * scale, kBarHeight, tile.kind, tile.label,
                  fmt::format("{}: {} to {}", tile.label, seconds_text(tile.start), seconds_text(tile.end)));
  }
  const double bottom = kChartTop + kBarStep * static_cast<double>(rows.size());
  document.text(left, bottom + 6, ChartAnchor::kStart, "0 s", true);
  document.text(left + kChartWidth * 1.4, bottom + 6, ChartAnchor::kEnd, seconds_text(last), true);
  const double end = add_legend(document, kinds, notes, left, bottom + 20, width);
  return document.finish(width + SvgDocument::kMargin, end + SvgDocument::kMargin);
}

}  // namespace artifex_devices
