// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/render/timeline_svg.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "artifex_devices/base/error.h"

namespace artifex_devices {
namespace {

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(TimelineSvg, HasSpansArrowsMemoryAndTexts) {
  TimelinePicture picture{.title = "a <trace>", .tracks = {"thread 1", "cpu:0"}, .kinds = {"span", "transfer"}};
  picture.spans = {{0, 0, 0, 1e-3, "step", "the step"}, {1, 1, 2e-4, 4e-4, "put", "64 bytes"}};
  picture.arrows = {{0, 1, 1e-4, 3e-4}};
  picture.memory = {{1, {{0, 0}, {2e-4, 64}, {9e-4, 0}}}};
  picture.notes = {"the clocks are shared"};
  const std::string svg = timeline_svg(picture);
  for (const char* part : {"<title>a &lt;trace&gt;</title>", ">thread 1<", ">cpu:0<", ">step<", "64 bytes",
                           ">transfer<", "up to 64 bytes", "the clocks are shared", ">200 us<"}) {
    EXPECT_NE(svg.find(part), std::string::npos) << part;
  }
  EXPECT_EQ(count(svg, "l-8 -4v8z"), 1U);
}

TEST(TimelineSvg, SaysWhatItDoesNotDraw) {
  TimelinePicture picture{.title = "long", .kinds = {"span"}};
  for (int i = 0; i < 70; ++i) picture.tracks.push_back("track " + std::to_string(i));
  for (int i = 0; i < 5000; ++i) picture.spans.push_back({i % 70, 0, i * 1e-3, i * 1e-3, "", ""});
  for (int i = 0; i < 300; ++i) picture.arrows.push_back({0, 1, 0, 1});
  const std::string svg = timeline_svg(picture);
  EXPECT_NE(svg.find("6 of 70 tracks are not drawn"), std::string::npos);
  EXPECT_NE(svg.find("1000 of 5000 spans are not drawn"), std::string::npos);
  EXPECT_NE(svg.find("100 of 300 arrows are not drawn"), std::string::npos);
}

TEST(TimelineSvg, IsEmptyWithoutEvents) {
  EXPECT_NE(timeline_svg({.title = "nothing"}).find("nothing"), std::string::npos);
}

TEST(TimelineSvg, RefusesWhatIsNotThere) {
  TimelinePicture picture{.title = "", .tracks = {"one"}, .kinds = {"span"}};
  picture.spans = {{1, 0, 0, 1, "", ""}};
  EXPECT_THROW(timeline_svg(picture), InvalidArgument);
  picture.spans = {{0, 0, 1, 0, "", ""}};
  EXPECT_THROW(timeline_svg(picture), InvalidArgument);
  picture.spans = {{0, 0, 0, std::numeric_limits<double>::quiet_NaN(), "", ""}};
  EXPECT_THROW(timeline_svg(picture), InvalidArgument);
  picture.spans.clear();
  picture.arrows = {{0, 3, 0, 1}};
  EXPECT_THROW(timeline_svg(picture), InvalidArgument);
}

}  // namespace
}  // namespace artifex_devices
