// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/render/roofline_svg.h"

#include <gtest/gtest.h>

#include <cmath>

#include "../sharding/worlds.h"
#include "artifex_devices/render/labels.h"
#include "artifex_devices/render/log_axis.h"
#include "svg_parts.h"

namespace artifex_devices {
namespace {

RooflinePlot plot() {
  return {"<chip>",
          {{"bfloat16", 1e14, false}, {"memory", 1e12, true}},
          {{"batch 1", 1, 0, false}, {"batch 1000", 1000, 0, false}, {"mine", 10, 4e12, true}},
          {}};
}

TEST(LogAxis, CoversItsValuesWithPowersOfTen) {
  const LogAxis axis({3, 240}, 0, 300);
  EXPECT_EQ(axis.low(), 1);
  EXPECT_EQ(axis.high(), 1000);
  EXPECT_DOUBLE_EQ(axis.pixel(10), 100);
  EXPECT_DOUBLE_EQ(axis.pixel(1e9), 300);
  EXPECT_EQ(axis.ticks(), (std::vector<double>{1, 10, 100, 1000}));
  EXPECT_EQ(LogAxis({5, 5}, 0, 1).ticks(), (std::vector<double>{1, 10}));
  EXPECT_EQ(LogAxis({100}, 0, 1).ticks(), (std::vector<double>{100, 1000}));
  EXPECT_LE(LogAxis({1e-300, 1e300}, 0, 1).ticks().size(), 11u);
}

TEST(LogAxis, FormatsThreeDigitsWithAPrefix) {
  EXPECT_EQ(si_text(4.5e10), "45 G");
  EXPECT_EQ(si_text(1.97e14), "197 T");
  EXPECT_EQ(si_text(999.4), "999");
  EXPECT_EQ(si_text(999.6), "1 k");
  EXPECT_EQ(si_text(0.1), "0.1");
  EXPECT_EQ(si_text(1), "1");
  EXPECT_EQ(si_text(1e25), "1e+07 E");
}

TEST(Labels, WrapAtSpaces) {
  EXPECT_EQ(wrapped("one two three", 7), (std::vector<std::string>{"one two", "three"}));
  EXPECT_EQ(wrapped("incomprehensible a", 4), (std::vector<std::string>{"incomprehensible", "a"}));
  EXPECT_EQ(wrapped("", 4), (std::vector<std::string>{}));
}

TEST(RooflineSvg, DrawsLimitsThatMeetAtTheRidgePoint) {
  const std::string svg = roofline_svg(plot());
  EXPECT_TRUE(is_well_formed(svg));
  // FLOP per byte from 1 to 1000, FLOP/s from 1e11 to 1e15: the slope rises two of four decades of 80 pixels.
  EXPECT_EQ(found(svg, "<path d=\"M92 284L", "", "\""), (std::vector<std::string>{"465.333 124"}));
  EXPECT_EQ(found(svg, "stroke-width=\"2.5\"", "", "/>").size(), 4u);  // two lines, and two in the legend
  EXPECT_EQ(tooltips(svg), (std::vector<std::string>{"ridge point of memory: 100 FLOP per byte",
                                                     "batch 1: 1 FLOP per byte, 1 TFLOP/s, by the model",
                                                     "batch 1000: 1000 FLOP per byte, 100 TFLOP/s, by the model",
                                                     "mine: 10 FLOP per byte, 4 TFLOP/s, measured"}));
  const std::vector<std::string> texts = labels(svg);
  EXPECT_EQ(texts[0], "&lt;chip&gt;");
  EXPECT_EQ(std::vector<std::string>(texts.end() - 6, texts.end()),
            (std::vector<std::string>{"batch 1000", "mine", "batch 1", "bfloat16: 100 TFLOP/s",
                                      "memory: 1 TB/s, ridge point at 100 FLOP per byte",
                                      "filled points are measured, hollow ones by the model"}));
  EXPECT_EQ(found(svg, "<circle", "cx=\"", "\""), (std::vector<std::string>{"465.3", "92.0", "652.0", "278.7"}));
  EXPECT_EQ(found(svg, "<circle", "fill=\"", "\""), (std::vector<std::string>{"none", "none", "none", "currentColor"}));
}

TEST(RooflineSvg, DrawsOtherRoofsDashed) {
  RooflinePlot wide = plot();
  wide.roofs.push_back({"network", 1e10, true});
  wide.roofs.push_back({"float32", 5e13, false});
  const std::string svg = roofline_svg(wide);
  EXPECT_EQ(found(svg, "stroke-width=\"2\"", "", "/>").size(), 4u);  // two lines, and two in the legend
  EXPECT_NE(svg.find(">network: 10 GB/s, ridge point at 1e+04 FLOP per byte<"), std::string::npos);
  EXPECT_NE(svg.find(">float32: 50 TFLOP/s<"), std::string::npos);
  wide.points = {{"sent", 100, 0, false, 2}};
  EXPECT_EQ(tooltips(roofline_svg(wide)).back(), "sent: 100 FLOP per byte of network, 1 TFLOP/s, by the model");
  EXPECT_EQ(found(roofline_svg(wide), "<circle", "stroke=\"", "\"").back(), "#16a34a");
}

TEST(RooflineSvg, HidesLabelsThatWouldOverlap) {
  RooflinePlot crowded = plot();
  crowded.points.assign(40, {"batch", 10, 0, false});
  const std::string svg = roofline_svg(crowded);
  EXPECT_EQ(found(svg, ">batch<", "", "/").size(), 6u);               // one below the other
  EXPECT_EQ(found(svg, "<path d=\"M278.667 ", "", "\"").size(), 5u);  // lines lead to all but the first
  EXPECT_EQ(tooltips(svg).size(), 41u);
  EXPECT_EQ(labels(svg).back(), "34 of 40 points have their label under the pointer only");
}

TEST(RooflineSvg, ReportsAllFaultsAtOnce) {
  RooflinePlot wrong = plot();
  wrong.roofs = {{"memory", -1, true}};
  wrong.points = {{"a", std::nan(""), 0, false}, {"b", 1, INFINITY, true}};
  EXPECT_EQ(
      message_of<InvalidArgument>([&] { roofline_svg(wrong); }),
      "to_svg: there is no roof in FLOP/s; the rate of memory is -1; a has nan FLOP per byte; b has inf FLOP/s; expected "
      "a roof of each kind, at most 64 roofs and 4096 points, and numbers of 1e-30 to 1e+30; correct them");
  wrong = plot();
  wrong.points = {{"a", 1, 0, false, 0}, {"b", 1, 0, false, 2}};
  EXPECT_EQ(message_of<InvalidArgument>([&] { roofline_svg(wrong); }),
            "to_svg: a is of roof 0, which is none in bytes/s; b is of roof 2, which is none in bytes/s; expected a "
            "roof of each kind, at most 64 roofs and 4096 points, and numbers of 1e-30 to 1e+30; correct them");
  wrong = plot();
  wrong.points.assign(5000, {"a", 1, 0, false});
  EXPECT_EQ(message_of<InvalidArgument>([&] { roofline_svg(wrong); }),
            "to_svg: there are 5000 points; expected a roof of each kind, at most 64 roofs and 4096 points, and "
            "numbers of 1e-30 to 1e+30; correct them");
  wrong.points = {{"a", 1e-30, 1e-30, true}, {"b", 1e30, 1e30, true}};
  EXPECT_TRUE(is_well_formed(roofline_svg(wrong)));
}

}  // namespace
}  // namespace artifex_devices
