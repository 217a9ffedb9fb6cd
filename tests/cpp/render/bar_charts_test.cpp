// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/render/bar_charts.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "artifex_devices/base/error.h"
#include "svg_parts.h"

namespace artifex_devices {
namespace {

constexpr double kBar = 20;       // height of bars and tiles of a schedule; tiles of a legend are lower
constexpr double kRounded = 0.1;  // of two numbers that are written with one digit

struct Rect {
  double x, y, width, height;
  double right() const { return x + width; }
};

double number_after(const std::string& text, const std::string& name) {
  const std::vector<std::string> values = found(text, name + "=\"", "", "\"");
  return values.empty() ? std::numeric_limits<double>::quiet_NaN() : std::stod(values[0]);
}

std::vector<Rect> rects(const std::string& svg) {
  std::vector<Rect> result;
  for (const std::string& each : found(svg, "<rect", "", "/>")) {
    result.push_back({number_after(each, " x"), number_after(each, " y"), number_after(each, " width"),
                      number_after(each, " height")});
  }
  return result;
}

/// Tiles of bars; not those of the legend.
std::vector<Rect> bars(const std::string& svg) {
  std::vector<Rect> result = rects(svg);
  std::erase_if(result, [](const Rect& each) { return each.height != kBar; });
  return result;
}

Rect picture(const std::string& svg) {
  const std::string head = found(svg, "<svg", "", ">")[0];
  return {0, 0, number_after(head, " width"), number_after(head, " height")};
}

void expect_inside(const std::vector<Rect>& parts, const Rect& whole) {
  for (const Rect& each : parts) {
    EXPECT_GE(each.x, 0);
    EXPECT_GE(each.y, 0);
    EXPECT_LE(each.right(), whole.width);
    EXPECT_LE(each.y + each.height, whole.height);
  }
}

double widths(const std::vector<Rect>& parts) {
  return std::accumulate(parts.begin(), parts.end(), 0.0,
                         [](double sum, const Rect& each) { return sum + each.width; });
}

/// Texts that are drawn: a tile without a label has an empty one.
std::vector<std::string> texts(const std::string& svg) {
  std::vector<std::string> result = labels(svg);
  std::erase(result, "");
  return result;
}

/// Left end of a text with this content; labels are at most 7 pixels a character.
double text_left(const std::string& svg, const std::string& content) {
  for (const std::string& each : found(svg, "<text", "", "</text>")) {
    if (each.substr(each.find('>') + 1) != content) continue;
    const double x = number_after(each, " x");
    const double length = 7.0 * static_cast<double>(content.size());
    if (each.find("\"end\"") != each.npos) return x - length;
    return each.find("\"middle\"") != each.npos ? x - length / 2 : x;
  }
  return std::numeric_limits<double>::quiet_NaN();
}

double text_height(const std::string& svg, const std::string& content) {
  for (const std::string& each : found(svg, "<text", "", "</text>")) {
    if (each.substr(each.find('>') + 1) == content) return number_after(each, " y");
  }
  return std::numeric_limits<double>::quiet_NaN();
}

BarChart stacked() {
  return {
      "memory",
      {"parameters", "gradients", "activations"},
      {{"stage 0", {2, 0, 3}, {"p 2", "g 0", "a 3"}, "5 GB"}, {"stage 1", {1, 1, 0}, {"p 1", "g 1", "a 0"}, "2 GB"}},
      10,
      "limit",
      false,
      {"a note"}};
}

TEST(BarChartSvg, ABarIsAsLongAsItsParts) {
  const std::string svg = bar_chart_svg(stacked());
  EXPECT_TRUE(is_well_formed(svg));
  const std::vector<Rect> parts = bars(svg);
  ASSERT_EQ(parts.size(), 4u);  // parts of 0 are not drawn
  // The limit of 10 is the longest value: 56 pixels for each unit.
  EXPECT_NEAR(parts[0].width, 2 * 56, kRounded);
  EXPECT_NEAR(parts[1].width, 3 * 56, kRounded);
  EXPECT_NEAR(parts[2].width, 56, kRounded);
  EXPECT_NEAR(parts[3].width, 56, kRounded);
  EXPECT_NEAR(widths(parts), 7 * 56, 4 * kRounded);
  EXPECT_NEAR(parts[1].x, parts[0].right(), kRounded);
  EXPECT_NEAR(parts[3].x, parts[2].right(), kRounded);
  EXPECT_EQ(parts[0].x, parts[2].x);  // both bars start at the same edge
  EXPECT_EQ(parts[0].y, parts[1].y);
  EXPECT_GE(parts[2].y, parts[0].y + kBar);
  EXPECT_EQ(tooltips(svg), (std::vector<std::string>{"p 2", "a 3", "p 1", "g 1", "", "", ""}));
  expect_inside(rects(svg), picture(svg));
}

TEST(BarChartSvg, PartsOfAKindHaveTheColourOfTheLegend) {
  const std::string svg = bar_chart_svg(stacked());
  const std::vector<std::string> colours = fills(svg);
  ASSERT_EQ(colours.size(), 7u);  // 4 parts and 3 kinds
  EXPECT_EQ(colours[0], colours[4]);
  EXPECT_EQ(colours[1], colours[6]);
  EXPECT_EQ(colours[2], colours[4]);
  EXPECT_EQ(colours[3], colours[5]);
  EXPECT_NE(colours[4], colours[5]);
  EXPECT_EQ(texts(svg), (std::vector<std::string>{"memory", "stage 0", "5 GB", "stage 1", "2 GB", "limit", "parameters",
                                                  "gradients", "activations", "a note"}));
}

TEST(BarChartSvg, OneKindNeedsNoLegend) {
  const BarChart chart{"one", {"seconds"}, {{"a", {1}, {"one"}, "1 s"}}, 0, "", false, {}};
  const std::string svg = bar_chart_svg(chart);
  EXPECT_EQ(rects(svg).size(), 1u);
  EXPECT_EQ(texts(svg), (std::vector<std::string>{"one", "a", "1 s"}));
  EXPECT_EQ(found(svg, "stroke-dasharray", "", "/>").size(), 0u);  // a chart without a limit has no line
}

TEST(BarChartSvg, AWaterfallEndsAtTheSum) {
  const BarChart chart{"step",
                       {"compute", "wait"},
                       {{"products", {4, 0}, {"p", ""}, "4 s"},
                        {"attention", {1, 0}, {"a", ""}, "1 s"},
                        {"bubble", {0, 3}, {"", "b"}, "3 s"}},
                       5,
                       "roofline",
                       true,
                       {}};
  const std::string svg = bar_chart_svg(chart);
  const std::vector<Rect> parts = bars(svg);
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_NEAR(parts[1].x, parts[0].right(), kRounded);
  EXPECT_NEAR(parts[2].x, parts[1].right(), kRounded);
  EXPECT_NEAR(parts[2].right() - parts[0].x, 560, kRounded);  // the sum, 8 s, is the longest value
  EXPECT_NEAR(widths(parts), 560, 3 * kRounded);
  const std::vector<std::string> line = found(svg, "<path d=\"M", "", " ");
  ASSERT_EQ(line.size(), 1u);
  EXPECT_NEAR(std::stod(line[0]), parts[0].x + 5 * 70, kRounded);
}

TEST(BarChartSvg, BarsAsideAreHollowAndNotInTheSum) {
  BarChart chart{"step", {"compute", "network"}, {}, 0, "", true, {}};
  chart.bars = {{"products", {3, 0}, {"p", ""}, "3 s"},
                {"hidden", {0, 2}, {"", "h"}, "2 s", true},
                {"update", {1, 0}, {"u", ""}, "1 s"}};
  const std::string svg = bar_chart_svg(chart);
  const std::vector<Rect> parts = bars(svg);
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_NEAR(parts[0].width, 3 * 140, kRounded);  // the sum without the hidden bar, 4 s, is the longest value
  EXPECT_NEAR(parts[1].width, 2 * 140, kRounded);
  EXPECT_EQ(parts[1].x, parts[0].x);
  EXPECT_NEAR(parts[2].x, parts[0].right(), kRounded);
  EXPECT_EQ(fills(svg)[1], "none");
  EXPECT_EQ(fills(svg)[0], fills(svg)[2]);
  chart.bars[1].parts[1] = 8;  // now the longest value: the picture is as wide as it
  EXPECT_NEAR(bars(bar_chart_svg(chart))[1].width, 560, kRounded);
}

TEST(BarChartSvg, TheLineOfALimitDoesNotCrossTheTextsOfBars) {
  // 560 pixels are 8 s. The text of the first bar begins at 3 s, 210 pixels from the left, and is 29 pixels wide.
  BarChart chart{"step", {"compute"}, {}, 3.2, "roofline", true, {}};
  chart.bars = {{"products", {3}, {"p"}, "3 s"}, {"update", {5}, {"u"}, "5 s"}};
  const std::vector<Rect> parts = bars(bar_chart_svg(chart));
  const double x = parts[0].x + 3.2 * 70;
  const double first = parts[0].y;
  EXPECT_EQ(found(bar_chart_svg(chart), "<path d=\"", "", "\""),
            std::vector<std::string>{
                fmt::format("M{0:g} {1:g}V{2:g}M{0:g} {3:g}V{4:g}", x, first - 6, first, first + 20, first + 52)});
  chart.limit = 4;  // beyond the text
  EXPECT_EQ(found(bar_chart_svg(chart), "<path d=\"", "", "\""),
            std::vector<std::string>{fmt::format("M{0:g} {1:g}V{2:g}", parts[0].x + 4 * 70, first - 6, first + 52)});
}

TEST(BarChartSvg, TheTextOfALimitIsBelowTheTitleAndInsideThePicture) {
  BarChart chart = stacked();
  chart.limit = 1e-3;
  chart.limit_text = "the memory of a device, far below all bars";
  const std::string svg = bar_chart_svg(chart);
  EXPECT_GE(text_height(svg, chart.limit_text) - text_height(svg, "memory"), 14);
  EXPECT_LE(text_height(svg, chart.limit_text) + 8, bars(svg)[0].y);
  EXPECT_GE(text_left(svg, chart.limit_text), 0);
  chart.limit = 100;  // now the right edge
  const std::string wide = bar_chart_svg(chart);
  EXPECT_LE(text_left(wide, chart.limit_text) + 7.0 * static_cast<double>(chart.limit_text.size()),
            picture(wide).width);
}

TEST(BarChartSvg, LongTextsWidenThePicture) {
  BarChart chart = stacked();
  chart.title = std::string(200, 'w');
  chart.bars[0].total = std::string(60, 'x');
  const std::string svg = bar_chart_svg(chart);
  EXPECT_GE(picture(svg).width, 7 * 200);
  EXPECT_LE(text_left(svg, chart.bars[0].total) + 7 * 60, picture(svg).width);
}

TEST(BarChartSvg, EscapesMarkup) {
  BarChart chart = stacked();
  chart.title = chart.bars[0].label = chart.bars[0].texts[0] = chart.kinds[0] = chart.notes[0] = "<a & \"b\">";
  const std::string svg = bar_chart_svg(chart);
  EXPECT_TRUE(is_well_formed(svg));
  EXPECT_EQ(svg.find("<a &"), svg.npos);
}

TEST(BarChartSvg, DrawsBarsOfZeros) {
  BarChart chart = stacked();
  chart.limit = 0;
  for (ChartBar& bar : chart.bars) bar.parts = {0, 0, 0};
  const std::string svg = bar_chart_svg(chart);
  EXPECT_EQ(bars(svg).size(), 0u);
  EXPECT_EQ(rects(svg).size(), 3u);  // the legend
  EXPECT_EQ(svg.find("nan"), svg.npos);
}

TEST(BarChartSvg, RefusesBarsThatAreNotNumbersOfEachKind) {
  const auto refused = [](const auto& change) {
    BarChart chart = stacked();
    change(chart);
    EXPECT_THROW(bar_chart_svg(chart), InvalidArgument);
  };
  refused([](BarChart& chart) { chart.bars.clear(); });
  refused([](BarChart& chart) { chart.bars.resize(257, chart.bars[0]); });
  refused([](BarChart& chart) { chart.bars[0].parts.pop_back(); });
  refused([](BarChart& chart) { chart.bars[0].texts.pop_back(); });
  refused([](BarChart& chart) { chart.bars[1].parts[0] = -1; });
  refused([](BarChart& chart) { chart.bars[1].parts[0] = std::numeric_limits<double>::infinity(); });
  refused([](BarChart& chart) { chart.limit = std::numeric_limits<double>::quiet_NaN(); });
  refused([](BarChart& chart) { chart.kinds.resize(17), chart.bars.resize(1); });
}

TEST(ScheduleSvg, TilesOfAStageAreItsWorkAndGapsAreTheBubble) {
  // GPipe with equal stages: 1 s forward, 2 s backward.
  constexpr int kStages = 4;
  constexpr int kMicrobatches = 8;
  std::vector<ScheduleTile> tiles;
  std::vector<std::string> names;
  for (int stage = 0; stage < kStages; ++stage) {
    names.push_back("stage " + std::to_string(stage));
    for (int i = 0; i < kMicrobatches; ++i) {
      const double forward = stage + i;
      const double backward = kMicrobatches + kStages - 1 + 2.0 * (kStages - 1 - stage + i);
      tiles.push_back({stage, 0, forward, forward + 1, std::to_string(i)});
      tiles.push_back({stage, 1, backward, backward + 2, std::to_string(i)});
    }
  }
  const std::string svg = schedule_svg("schedule", names, {"forward", "backward"}, tiles, {});
  EXPECT_TRUE(is_well_formed(svg));
  std::map<double, std::vector<Rect>> rows;
  for (const Rect& each : bars(svg)) rows[each.y].push_back(each);
  ASSERT_EQ(rows.size(), 4u);
  const double second = 784.0 / 33;  // pixels: 8 x 3 s of work, and 3 x 3 s of bubble
  double begin = 0;                  // of the row's first pass
  for (auto& [y, parts] : rows) {
    ASSERT_EQ(parts.size(), 17u);  // the outline of the row, 8 passes forward and 8 backward
    const Rect outline = parts.front();
    parts.erase(parts.begin());
    EXPECT_NEAR(outline.width, 784, kRounded);
    EXPECT_NEAR(widths(parts), 24 * second, 16 * kRounded);
    std::ranges::sort(parts, {}, &Rect::x);
    for (size_t i = 1; i < parts.size(); ++i) EXPECT_GE(parts[i].x, parts[i - 1].right() - 2 * kRounded);
    EXPECT_NEAR(parts.front().x, outline.x + begin * second, kRounded);
    EXPECT_NEAR(parts.back().right(), outline.right() - 2 * begin * second, 2 * kRounded);
    begin += 1;
  }
  expect_inside(rects(svg), picture(svg));
}

TEST(ScheduleSvg, NamesRowsKindsAndTheEnd) {
  const std::string svg = schedule_svg("two", {"stage 0", "stage 1"}, {"forward", "backward"},
                                       {{0, 0, 0, 1, "1"}, {1, 1, 1, 4, "2"}}, {"a note"});
  EXPECT_EQ(texts(svg), (std::vector<std::string>{"two", "stage 0", "stage 1", "1", "2", "0 s", "4 s", "forward",
                                                  "backward", "a note"}));
  EXPECT_EQ(tooltips(svg), (std::vector<std::string>{"", "", "1: 0 s to 1 s", "2: 1 s to 4 s", "", ""}));
  const std::vector<std::string> colours = fills(svg);
  ASSERT_EQ(colours.size(), 6u);  // two outlines, two tiles, two kinds
  EXPECT_EQ(colours[2], colours[4]);
  EXPECT_EQ(colours[3], colours[5]);
  EXPECT_NE(colours[2], colours[3]);
}

TEST(ScheduleSvg, LabelsNarrowTilesInASmallFont) {
  const std::string svg = schedule_svg("two", {"stage"}, {}, {{0, 0, 0, 10, "1"}, {0, 0, 10, 1000, "2"}}, {});
  EXPECT_EQ(texts(svg), (std::vector<std::string>{"two", "stage", "1", "2", "0 s", "1000 s"}));  // 7.8 pixels for "1"
  EXPECT_EQ(found(svg, " font-size=\"9\">", "", "<"), std::vector<std::string>{"1"});
}

TEST(ScheduleSvg, LabelsOnlyTilesThatAreWideEnough) {
  const std::string svg = schedule_svg("two", {"stage"}, {}, {{0, 0, 0, 1, "1"}, {0, 0, 1, 1000, "2"}}, {});
  EXPECT_EQ(texts(svg), (std::vector<std::string>{"two", "stage", "2", "0 s", "1000 s"}));
  EXPECT_EQ(tooltips(svg).size(), 3u);
}

TEST(ScheduleSvg, RefusesTilesOutsideRowsOrTime) {
  const auto refused = [](const ScheduleTile& tile) {
    EXPECT_THROW(schedule_svg("", {"stage"}, {}, {tile}, {}), InvalidArgument);
  };
  refused({1, 0, 0, 1, ""});
  refused({-1, 0, 0, 1, ""});
  refused({0, 0, 1, 1, ""});
  refused({0, 0, -1, 1, ""});
  refused({0, 0, 0, std::numeric_limits<double>::infinity(), ""});
  EXPECT_THROW(schedule_svg("", {"stage"}, {}, {}, {}), InvalidArgument);
  const std::vector<ScheduleTile> many((size_t{1} << 14) + 1, {0, 0, 0, 1, ""});
  EXPECT_THROW(schedule_svg("", {"stage"}, {}, many, {}), InvalidArgument);
  EXPECT_THROW(schedule_svg("", std::vector<std::string>(257), {}, {{0, 0, 0, 1, ""}}, {}), InvalidArgument);
}

}  // namespace
}  // namespace artifex_devices
