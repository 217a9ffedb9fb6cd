// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/render/machine_svg.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

namespace artifex_devices {
namespace {

// Every text between `begin` and `end`.
std::vector<std::string> between(const std::string& text, const std::string& begin, const std::string& end) {
  std::vector<std::string> found;
  for (size_t at = text.find(begin); at != std::string::npos; at = text.find(begin, at)) {
    at += begin.size();
    found.push_back(text.substr(at, text.find(end, at) - at));
  }
  return found;
}

std::vector<std::string> labels(const std::string& svg) {
  std::vector<std::string> found;
  for (const std::string& element : between(svg, "<text", "</text>"))
    found.push_back(element.substr(element.find('>') + 1));
  return found;
}

// Values of an attribute of all rectangles.
std::vector<std::string> of_rectangles(const std::string& svg, const std::string& name) {
  std::vector<std::string> found;
  for (const std::string& element : between(svg, "<rect", ">")) {
    for (std::string& value : between(element, " " + name + "=\"", "\"")) found.push_back(std::move(value));
  }
  return found;
}

std::vector<std::string> colours(const std::string& svg) {
  std::vector<std::string> found = of_rectangles(svg, "fill");
  std::erase_if(found, [](const std::string& value) { return !value.starts_with('#'); });
  return found;
}

struct Box {
  double left, top, right, bottom;
  bool holds(const Box& other) const {
    return left < other.left && top < other.top && right > other.right && bottom > other.bottom;
  }
  bool is_apart_from(const Box& other) const {
    return right < other.left || other.right < left || bottom < other.top || other.bottom < top;
  }
};

std::vector<Box> boxes(const std::string& svg) {
  const auto x = of_rectangles(svg, "x");
  const auto y = of_rectangles(svg, "y");
  const auto width = of_rectangles(svg, "width");
  const auto height = of_rectangles(svg, "height");
  std::vector<Box> found;
  for (size_t i = 0; i < x.size(); ++i) {
    const double left = std::stod(x[i]);
    const double top = std::stod(y[i]);
    found.push_back({left, top, left + std::stod(width[i]), top + std::stod(height[i])});
  }
  return found;
}

TEST(MachineSvg, JoinsBoxesOfSingleChildrenAndColoursDevices) {
  const std::string svg = machine_svg(*Machine::from_synthetic("pack:2 numa:1 l2:1(size=1048576) core:1 pu:2"));
  EXPECT_EQ(labels(svg),
            (std::vector<std::string>{"pack:2 numa:1 l2:1(size=1048576) core:1 pu:2: 2 CPU devices, 4 PUs, 2.0 GiB",
                                      "machine", "Package 0", "memory 0: 1.0 GiB", "L2 1.0 MiB", "Core 0", "0", "1",
                                      "Package 1", "memory 1: 1.0 GiB", "L2 1.0 MiB", "Core 1", "2", "3",
                                      "colours: CPU devices with their memory; hollow: not part of a device"}));
  const std::vector<std::string> found = colours(svg);
  ASSERT_EQ(found.size(), 6u);
  EXPECT_EQ(found[0], found[1]);
  EXPECT_EQ(found[0], found[2]);
  EXPECT_NE(found[0], found[3]);
  EXPECT_EQ(found[3], found[5]);
}

TEST(MachineSvg, NestsOrSeparatesBoxes) {
  for (const char* machine : {"pu:1", "numa:3 pu:5", "pack:2 numa:2 l3:2 core:3 pu:2", "node:16 pu:16"}) {
    const std::vector<Box> found = boxes(machine_svg(*Machine::from_synthetic(machine)));
    ASSERT_GT(found.size(), 1u);
    for (size_t i = 0; i < found.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        EXPECT_TRUE(found[j].holds(found[i]) || found[i].is_apart_from(found[j])) << machine << ' ' << j << ' ' << i;
      }
    }
  }
}

TEST(MachineSvg, ReportsOmittedPus) {
  const std::string svg = machine_svg(*Machine::from_synthetic("node:4 pu:8"), 10);
  EXPECT_EQ(labels(svg).back(), "22 PUs are left out");
  EXPECT_EQ(colours(svg).size(), 10u + 4u);
}

TEST(MachineSvg, EscapesTextOfTheMachine) {
  const auto folder = std::filesystem::path(testing::TempDir()) / ("artifex_svg_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const auto path = folder / "a<b>&.xml";
  std::filesystem::copy_file(ARTIFEX_TEST_DATA "/machines/two_packages_two_memories.xml", path);
  const std::string svg = machine_svg(*Machine::from_xml(path.string()));
  std::filesystem::remove_all(folder);
  EXPECT_NE(labels(svg)[0].find("/a&lt;b&gt;&amp;.xml: 2 CPU devices"), std::string::npos) << labels(svg)[0];
}

}  // namespace
}  // namespace artifex_devices
