// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "../sharding/worlds.h"
#include "artifex_devices/render/labels.h"
#include "artifex_devices/render/mesh_text.h"
#include "artifex_devices/render/sharding_text.h"
#include "artifex_devices/sharding/named_sharding.h"
#include "artifex_devices/sharding/single_device_sharding.h"

namespace artifex_devices {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines{""};
  for (const char c : text) {
    if (c == '\n') {
      lines.emplace_back();
    } else {
      lines.back() += c;
    }
  }
  return lines;
}

class TextTest : public testing::Test {
 protected:
  std::string draw(const MeshRef& mesh, std::vector<SpecEntry> entries, const Dims& shape, int max_columns = 80,
                   Uneven uneven = Uneven::kError) {
    const auto sharding = NamedSharding::make(mesh, PartitionSpec(std::move(entries)), MemoryKind::kDevice, uneven);
    return sharding_text(*sharding, shape, max_columns);
  }
  ClientRef client_ = world_of(8);
  MeshRef mesh_ = mesh_of(client_, {2, 4}, {"x", "y"});
  MeshRef flat_ = mesh_of(client_, {8}, {"q"});
  MeshRef cube_ = mesh_of(client_, {2, 2, 2}, {"a", "b", "c"});
};

TEST_F(TextTest, DrawsAMeshOfTwoAxesAsATable) {
  EXPECT_EQ(mesh_text(*mesh_),
            "Mesh('x': 2, 'y': 4): 8 cpu devices\n"
            "┌───────┬───┬───┬───┬───┐\n"
            "│ x \\ y │ 0 │ 1 │ 2 │ 3 │\n"
            "├───────┼───┼───┼───┼───┤\n"
            "│   0   │ 0 │ 1 │ 2 │ 3 │\n"
            "│   1   │ 4 │ 5 │ 6 │ 7 │\n"
            "└───────┴───┴───┴───┴───┘");
}

TEST_F(TextTest, DrawsAMeshOfOneAxisAsARow) {
  EXPECT_EQ(mesh_text(*mesh_of(client_, {3}, {"q"})),
            "Mesh('q': 3): 3 cpu devices\n"
            "┌───┬───┬───┬───┐\n"
            "│ q │ 0 │ 1 │ 2 │\n"
            "├───┼───┼───┼───┤\n"
            "│   │ 0 │ 1 │ 2 │\n"
            "└───┴───┴───┴───┘");
}

TEST_F(TextTest, DrawsALongMeshInRowsOfSixteen) {
  const std::vector<std::string> lines = lines_of(mesh_text(*mesh_of(world_of(18), {18}, {"data"})));
  ASSERT_EQ(lines.size(), 7u);
  EXPECT_TRUE(lines[2].starts_with("│ data │ +0 │ +1 │ +")) << lines[2];
  EXPECT_TRUE(lines[5].starts_with("│  16  │ 16 │ 17 │    │")) << lines[5];
}

TEST_F(TextTest, DrawsTheLastTwoOfThreeAxesAsColumns) {
  EXPECT_EQ(mesh_text(*cube_),
            "Mesh('a': 2, 'b': 2, 'c': 2): 8 cpu devices\n"
            "┌─────────┬─────┬─────┬─────┬─────┐\n"
            "│ a \\ b,c │ 0,0 │ 0,1 │ 1,0 │ 1,1 │\n"
            "├─────────┼─────┼─────┼─────┼─────┤\n"
            "│    0    │  0  │  1  │  2  │  3  │\n"
            "│    1    │  4  │  5  │  6  │  7  │\n"
            "└─────────┴─────┴─────┴─────┴─────┘");
}

TEST_F(TextTest, ReportsOmittedDevicesOfAMesh) {
  EXPECT_EQ(lines_of(mesh_text(*mesh_, 5)).back(), "shown: 2 of 2 rows and 2 of 4 columns");
  EXPECT_EQ(lines_of(mesh_text(*flat_, 5)).back(), "shown: 5 of 8 devices");
  EXPECT_EQ(lines_of(mesh_text(*mesh_of(world_of(1024), {32, 32}, {"x", "y"}))).back(),
            "shown: 16 of 32 rows and 16 of 32 columns");
}

TEST_F(TextTest, DrawsMeshesWithoutAxesOrDevices) {
  EXPECT_EQ(mesh_text(*Mesh::make_empty()), "Mesh(): no devices");
  EXPECT_EQ(mesh_text(*mesh_of(client_, {}, {})), "Mesh(): 1 cpu device\n┌───┬───┐\n│   │ 0 │\n└───┴───┘");
}

TEST_F(TextTest, DrawsTheGridOfJax) {
  EXPECT_EQ(draw(mesh_, {on({"x"}), on({"y"})}, {16, 16}),
            "┌───────┬───────┬───────┬───────┐\n"
            "│       │       │       │       │\n"
            "│ CPU 0 │ CPU 1 │ CPU 2 │ CPU 3 │\n"
            "│       │       │       │       │\n"
            "│       │       │       │       │\n"
            "├───────┼───────┼───────┼───────┤\n"
            "│       │       │       │       │\n"
            "│ CPU 4 │ CPU 5 │ CPU 6 │ CPU 7 │\n"
            "│       │       │       │       │\n"
            "│       │       │       │       │\n"
            "└───────┴───────┴───────┴───────┘");
  EXPECT_EQ(draw(mesh_, {on({"x"})}, {16, 16}),
            "┌───────────────────────┐\n"
            "│                       │\n"
            "│      CPU 0,1,2,3      │\n"
            "│                       │\n"
            "│                       │\n"
            "├───────────────────────┤\n"
            "│                       │\n"
            "│      CPU 4,5,6,7      │\n"
            "│                       │\n"
            "│                       │\n"
            "└───────────────────────┘");
  EXPECT_EQ(draw(mesh_, {on({"y"}), on({"x"})}, {1024, 16}),
            "┌───────┬───────┐\n"
            "│ CPU 0 │ CPU 4 │\n"
            "├───────┼───────┤\n"
            "│ CPU 1 │ CPU 5 │\n"
            "├───────┼───────┤\n"
            "│ CPU 2 │ CPU 6 │\n"
            "├───────┼───────┤\n"
            "│ CPU 3 │ CPU 7 │\n"
            "└───────┴───────┘");
}

TEST_F(TextTest, DrawsOneDimensionAsTheRowOfJax) {
  EXPECT_EQ(draw(mesh_, {on({"y"})}, {16}),
            "┌───────┬───────┬───────┬───────┐\n"
            "│CPU 0,4│CPU 1,5│CPU 2,6│CPU 3,7│\n"
            "└───────┴───────┴───────┴───────┘");
  EXPECT_EQ(draw(mesh_, {}, {16}),
            "┌───────────────────┐\n"
            "│CPU 0,1,2,3,4,5,6,7│\n"
            "└───────────────────┘");
}

TEST_F(TextTest, DrawsScalarsEmptyArraysAndSingleDevices) {
  EXPECT_EQ(sharding_text(*SingleDeviceSharding::make(client_->device(DeviceId(3))), {}),
            "┌───────┐\n"
            "│ CPU 3 │\n"
            "└───────┘");
  EXPECT_EQ(draw(mesh_, {on({"x"})}, {0, 5}),
            "┌───────────┐\n"
            "│CPU 0,1,2,3│\n"
            "├───────────┤\n"
            "│CPU 4,5,6,7│\n"
            "└───────────┘");
}

TEST_F(TextTest, DrawsTheTwoDimensionsWithMostParts) {
  EXPECT_EQ(lines_of(draw(mesh_, {on({"y"}), SpecEntry(), on({"x"})}, {4, 4, 4})).back(),
            "rows are dimension 0 and columns dimension 2 of (4, 4, 4)");
  const std::vector<std::string> lines = lines_of(draw(cube_, {on({"a"}), on({"b"}), on({"c"})}, {4, 4, 4}));
  EXPECT_EQ(lines[2], "│ CPU 0,1  │ CPU 2,3  │");
  EXPECT_EQ(lines.back(),
            "rows are dimension 0 and columns dimension 1 of (4, 4, 4); dimension 2 is split into 2 parts");
}

TEST_F(TextTest, ReportsDevicesWithoutElements) {
  EXPECT_EQ(lines_of(draw(flat_, {on({"q"})}, {5}, 80, Uneven::kLastShort)).back(), "without elements: CPU 5,6,7");
}

TEST_F(TextTest, ShortensLabelsThenOmitsColumns) {
  EXPECT_EQ(draw(mesh_, {}, {16}, 20),
            "┌──────────────────┐\n"
            "│     CPU 0-7      │\n"
            "└──────────────────┘");
  EXPECT_EQ(draw(flat_, {on({"q"})}, {8}, 30),
            "┌──────┬──────┬──────┬──────┐\n"
            "│CPU 0 │CPU 1 │CPU 2 │CPU 3 │\n"
            "└──────┴──────┴──────┴──────┘\n"
            "shown: 1 of 1 rows and 4 of 8 columns of parts");
}

TEST_F(TextTest, KeepsLinesWithinTheWidth) {
  const MeshRef big = mesh_of(world_of(4096), {64, 64}, {"x", "y"});
  for (const int width : {20, 33, 80, 200}) {
    for (const Dims& shape : {Dims{64, 64}, Dims{64, 6400}, Dims{6400, 64}}) {
      for (const std::string& line : lines_of(draw(big, {on({"x"}), on({"y"})}, shape, width))) {
        if (line.starts_with("shown")) continue;
        EXPECT_LE(text_width(line), width) << line;
      }
    }
  }
}

TEST_F(TextTest, RefusesIndivisibleShapes) { EXPECT_THROW(draw(mesh_, {on({"x"})}, {3}), IndivisibleError); }

TEST(Labels, ListDevicesInTheMostDetailedFormThatFits) {
  EXPECT_EQ(devices_label("CPU", {0, 1, 2, 3}, 11), "CPU 0,1,2,3");
  EXPECT_EQ(devices_label("CPU", {0, 1, 2, 3}, 10), "CPU 0-3");
  EXPECT_EQ(devices_label("CPU", {0, 1, 2, 3, 8, 9}, 12), "CPU 0-3,8,9");
  EXPECT_EQ(devices_label("CPU", {0, 2, 4, 6, 8}, 10), "CPU 0..8");
  EXPECT_EQ(devices_label("CPU", {12345}, 3), "CPU 12345");
  EXPECT_EQ(devices_label("CPU", {}, 10), "");
}

TEST(Labels, WriteAxisNamesOnOneLineWithoutQuotes) {
  EXPECT_EQ(axis_label(AxisName("data")), "data");
  EXPECT_EQ(axis_label(AxisName("a\nb")), "a\\nb");
  EXPECT_EQ(axis_label(AxisName::foreign("('a',\n1)")), "('a', 1)");
  EXPECT_EQ(text_width("größe"), 5);
}

}  // namespace
}  // namespace artifex_devices
