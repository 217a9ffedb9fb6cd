// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "../sharding/worlds.h"
#include "artifex_devices/cluster/cluster_presets.h"
#include "artifex_devices/device/cluster_client.h"
#include "artifex_devices/render/placed_mesh.h"
#include "svg_parts.h"

namespace artifex_devices {
namespace {

/// Fills of the small tiles, in order.
std::vector<std::string> tile_fills(const std::string& svg) { return found(svg, "<rect", " fill=\"", "\""); }

/// All tooltips, without the title of the picture.
std::vector<std::string> titles(const std::string& svg) {
  std::vector<std::string> all = found(svg, "<title>", "", "</title>");
  all.erase(all.begin());
  return all;
}

PlacedMesh grid_of(int64_t columns, int64_t rows, int64_t layers, std::vector<PlacedAxis> axes) {
  PlacedMesh mesh;
  mesh.title = "a mesh";
  mesh.axes = std::move(axes);
  mesh.network = NetworkKind::kTorus;
  mesh.platform = "tpu";
  for (int64_t i = 0; i < columns * rows * layers; ++i) {
    mesh.devices.push_back({i, 0, {i % columns, i / columns % rows, i / columns / rows}, 0});
  }
  return mesh;
}

TEST(PlacedMeshSvg, ColoursTheGroupsOfEachAxis) {
  const std::string svg = placed_mesh_svg(grid_of(2, 2, 1, {{"data", 2, "y: line of 2"}, {"model", 2, ""}}));
  EXPECT_TRUE(is_well_formed(svg));
  EXPECT_EQ(
      labels(svg),
      (std::vector<std::string>{
          "a mesh", "data: 2 groups of 2, y: line of 2", "0", "0", "1", "1", "model: 2 groups of 2", "0", "1", "0", "1",
          "one colour: devices that work together along the axis; number: place along it", "x to the right, y down"}));
  const std::vector<std::string> colours = tile_fills(svg);
  ASSERT_EQ(colours.size(), 8u);
  // "data" connects devices of a column, "model" devices of a row.
  EXPECT_EQ(colours[0], colours[2]);
  EXPECT_EQ(colours[1], colours[3]);
  EXPECT_NE(colours[0], colours[1]);
  EXPECT_EQ(colours[4], colours[5]);
  EXPECT_EQ(colours[6], colours[7]);
  EXPECT_NE(colours[4], colours[6]);
  EXPECT_EQ(titles(svg)[3], "tpu:3 at (1,1,0): data 1, model 1");
}

TEST(PlacedMeshSvg, ExtendsWrapAroundLinks) {
  PlacedMesh mesh = grid_of(2, 2, 1, {{"a", 4, ""}});
  const auto paths = [&] { return found(placed_mesh_svg(mesh), "<path d=\"", "", "\""); };
  ASSERT_EQ(paths().size(), 1u);
  // Two rows and two columns, through the middles of tiles of 22 pixels with gaps of 7.
  EXPECT_EQ(paths()[0], "M20 81H71M20 110H71M31 70V121M60 70V121");
  mesh.wraps = {true, false, false};
  ASSERT_EQ(paths().size(), 2u);
  EXPECT_EQ(paths()[1], "M20 81h-8M71 81h8M20 110h-8M71 110h8");
  EXPECT_EQ(labels(placed_mesh_svg(mesh)).back(), "x to the right (ends joined), y down");
}

TEST(PlacedMeshSvg, DrawsABlockForEachZOfATorus) {
  const std::string svg = placed_mesh_svg(grid_of(2, 1, 3, {{"a", 6, ""}}));
  EXPECT_EQ(labels(svg), (std::vector<std::string>{
                             "a mesh", "a: 1 group of 6", "z = 0", "0", "1", "z = 1", "2", "3", "z = 2", "4", "5",
                             "one colour: devices that work together along the axis; number: place along it",
                             "x to the right, a block for each z"}));
}

TEST(PlacedMeshSvg, TruncatesLargeMeshesWithANote) {
  const std::string svg = placed_mesh_svg(grid_of(16, 20, 28, {{"data", 28, ""}, {"model", 320, ""}}));
  EXPECT_LT(svg.size(), 80'000u);
  EXPECT_TRUE(is_well_formed(svg));
  EXPECT_EQ(labels(svg).back(), "shown: 3 of 28 layers along z: 960 of 8960 devices");
  // One path per colour, one square per device: 960 for each of two axes.
  size_t squares = 0;
  for (const std::string& path : found(svg, "<path fill", "d=\"", "\"")) squares += std::ranges::count(path, 'M');
  EXPECT_EQ(squares, 1920u);
  const std::string wide = placed_mesh_svg(grid_of(100, 1, 1, {{"a", 100, ""}}));
  EXPECT_EQ(labels(wide).back(), "shown: 32 of 100 chips along x: 32 of 100 devices");
  EXPECT_EQ(labels(placed_mesh_svg(grid_of(4, 4, 4, {{"a", 64, ""}}), -5)).back(),
            "shown: 1 of 4 layers along z: 16 of 64 devices");
  const std::string deep =
      placed_mesh_svg(grid_of(8, 4, 1, {{"a", 2, ""}, {"b", 2, ""}, {"c", 2, ""}, {"d", 2, ""}, {"e", 2, ""}}));
  EXPECT_EQ(labels(deep).back(), "1 more axis of the mesh is not drawn");
}

TEST(PlacedMeshSvg, DrawsNodesAsBoxes) {
  const ClientRef client = make_cluster_client(gpu_cluster("h100", 2, {}));
  const PlacedMesh mesh = placed_mesh(*mesh_of(client, {2, 8}, {"data", "model"}));
  EXPECT_EQ(mesh.title, "Mesh('data': 2, 'model': 8) on 2 nodes x 8 h100");
  const std::string svg = placed_mesh_svg(mesh);
  EXPECT_EQ(labels(svg), (std::vector<std::string>{
                             "Mesh(&#39;data&#39;: 2, &#39;model&#39;: 8) on 2 nodes x 8 h100",
                             "data: 8 groups of 2",
                             "node 0",
                             "0",
                             "0",
                             "0",
                             "0",
                             "0",
                             "0",
                             "0",
                             "0",
                             "node 1",
                             "1",
                             "1",
                             "1",
                             "1",
                             "1",
                             "1",
                             "1",
                             "1",
                             "model: 2 groups of 8",
                             "node 0",
                             "0",
                             "1",
                             "2",
                             "3",
                             "4",
                             "5",
                             "6",
                             "7",
                             "node 1",
                             "0",
                             "1",
                             "2",
                             "3",
                             "4",
                             "5",
                             "6",
                             "7",
                             "one colour: devices that work together along the axis; number: place along it"}));
  EXPECT_EQ(titles(svg).back(), "gpu:15 of node 1: data 1, model 7");
}

TEST(PlacedMeshSvg, WrapsAnAxisThatTheMeshCovers) {
  const ClientRef client = make_cluster_client(tpu_cluster("v5e", {16, 16}, 1));
  EXPECT_EQ(placed_mesh(*mesh_of(client, {16, 16}, {"a", "b"})).wraps, (std::array<bool, 3>{true, true, false}));
  // The first 32 devices: two rows.
  EXPECT_EQ(placed_mesh(*mesh_of(client, {2, 16}, {"a", "b"})).wraps, (std::array<bool, 3>{true, false, false}));
  const ClientRef cores = make_cluster_client(tpu_cluster("7x", {2, 2, 1}, 1));
  const std::string svg = placed_mesh_svg(placed_mesh(*mesh_of(cores, {8}, {"a"})));
  EXPECT_EQ(labels(svg).back(), "x to the right, y down; 2 cores of a chip side by side");
  EXPECT_EQ(titles(svg)[3], "tpu:3 at (1,0,0) core 1: a 3");
}

TEST(PlacedMeshSvg, EscapesNamesAndRefusesInvalidMeshes) {
  PlacedMesh mesh = grid_of(2, 1, 1, {{"<b>&", 2, "\"on\""}});
  mesh.title = "<script>";
  const std::string svg = placed_mesh_svg(mesh);
  EXPECT_TRUE(is_well_formed(svg));
  EXPECT_EQ(labels(svg)[0], "&lt;script&gt;");
  EXPECT_EQ(labels(svg)[1], "&lt;b&gt;&amp;: 1 group of 2, &quot;on&quot;");
  mesh.devices[1].at = {0, 0, 0};
  EXPECT_EQ(message_of<InvalidArgument>([&] { placed_mesh_svg(mesh); }),
            "placed_mesh_svg: devices 0 and 1 are at the same place; expected a different place for each");
  mesh.axes[0].size = 3;
  EXPECT_EQ(message_of<InvalidArgument>([&] { placed_mesh_svg(mesh); }),
            "placed_mesh_svg: there are 2 devices; expected 3, the product of the sizes");
  mesh.axes[0].size = 0;
  EXPECT_EQ(message_of<InvalidArgument>([&] { placed_mesh_svg(mesh); }),
            "placed_mesh_svg: axis <b>& has size 0; expected sizes that multiply to the number of devices");
  EXPECT_EQ(message_of<InvalidArgument>([&] { placed_mesh_svg(PlacedMesh()); }),
            "placed_mesh_svg: the mesh has no devices; expected one at least");
  EXPECT_EQ(message_of<InvalidArgument>([&] { placed_mesh(*mesh_of(world_of(2), {2}, {"x"})); }),
            "placed_mesh_svg: Mesh('x': 2, axis_types=(Auto,)) is of devices whose network is not known; expected a "
            "mesh of a cluster's devices; see artifex_devices.cluster, or use mesh_svg");
}

}  // namespace
}  // namespace artifex_devices
