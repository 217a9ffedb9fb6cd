// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace artifex_devices {

/// A row of a chart: a bar that consists of consecutive parts.
struct ChartBar {
  std::string label;
  std::vector<double> parts;       // of each of the chart's kinds, 0 or more
  std::vector<std::string> texts;  // of each part, for tooltips
  std::string total;               // behind the bar
  bool is_aside = false;           // hollow, from the left edge, and not in the sum of a waterfall
};

/// Horizontal bars, stacked by kind, one below the other.
struct BarChart {
  std::string title;
  std::vector<std::string> kinds;
  std::vector<ChartBar> bars;
  double limit = 0;  // drawn as a line across all bars; 0: none
  std::string limit_text;
  bool is_waterfall = false;  // each bar starts where the one before it ended
  std::vector<std::string> notes;
};

/// A chart as a stand-alone SVG picture. Throws InvalidArgument for no bars, more than 256 bars or 16 kinds, bars with
/// another number of parts than kinds, and parts that are not finite or below 0.
std::string bar_chart_svg(const BarChart& chart);

/// One task of a schedule: a tile in the row of its stage.
struct ScheduleTile {
  int64_t row = 0;
  int64_t kind = 0;  // its colour
  double start = 0;
  double end = 0;
  std::string label;
};

/// Tiles over time, one row for each stage; gaps stay empty. Throws InvalidArgument for no tiles, more than 2^14, or
/// tiles that end before they start.
std::string schedule_svg(const std::string& title, const std::vector<std::string>& rows,
                         const std::vector<std::string>& kinds, const std::vector<ScheduleTile>& tiles,
                         const std::vector<std::string>& notes);

}  // namespace artifex_devices
