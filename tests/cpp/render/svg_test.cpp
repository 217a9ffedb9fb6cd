// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/render/svg.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "../sharding/worlds.h"
#include "artifex_devices/render/svg_document.h"
#include "artifex_devices/sharding/named_sharding.h"
#include "artifex_devices/sharding/single_device_sharding.h"
#include "svg_parts.h"

namespace artifex_devices {
namespace {

class SvgTest : public testing::Test {
 protected:
  std::string draw(const MeshRef& mesh, std::vector<SpecEntry> entries, const Dims& shape,
                   Uneven uneven = Uneven::kError) {
    return sharding_svg(*NamedSharding::make(mesh, PartitionSpec(std::move(entries)), MemoryKind::kDevice, uneven),
                        shape);
  }
  ClientRef client_ = world_of(8, 2);
  MeshRef mesh_ = mesh_of(client_, {2, 4}, {"x", "y"});
  MeshRef flat_ = mesh_of(client_, {8}, {"q"});
};

TEST_F(SvgTest, DrawsATilePerDeviceColouredByMemory) {
  const std::string svg = mesh_svg(*mesh_);
  EXPECT_EQ(labels(svg), (std::vector<std::string>{"Mesh(&#39;x&#39;: 2, &#39;y&#39;: 4): 8 cpu devices", "y", "x", "0",
                                                   "1", "2", "3", "0", "0", "1", "2", "3", "1", "4", "5", "6", "7",
                                                   "colours: memory that devices share"}));
  const std::vector<std::string> colours = fills(svg);
  ASSERT_EQ(colours.size(), 8u);
  EXPECT_EQ(std::vector<std::string>(4, colours[0]), std::vector<std::string>(colours.begin(), colours.begin() + 4));
  EXPECT_EQ(std::vector<std::string>(4, colours[4]), std::vector<std::string>(colours.begin() + 4, colours.end()));
  EXPECT_NE(colours[0], colours[4]);
  EXPECT_EQ(tooltips(svg)[5], "cpu:5, memory 1");
}

TEST_F(SvgTest, DrawsATilePerPartWithDevicesAndAxes) {
  const std::string svg = draw(mesh_, {on({"x"}), on({"y"})}, {16, 8});
  EXPECT_EQ(tooltips(svg), (std::vector<std::string>{"[0:8, 0:2] CPU 0", "[0:8, 2:4] CPU 1", "[0:8, 4:6] CPU 2",
                                                     "[0:8, 6:8] CPU 3", "[8:16, 0:2] CPU 4", "[8:16, 2:4] CPU 5",
                                                     "[8:16, 4:6] CPU 6", "[8:16, 6:8] CPU 7"}));
  EXPECT_EQ(labels(svg), (std::vector<std::string>{
                             "dimension 1: 8, sharded over y", "dimension 0: 16, sharded over x", "CPU 0", "CPU 1",
                             "CPU 2", "CPU 3", "CPU 4", "CPU 5", "CPU 6", "CPU 7",
                             "(16, 8) as P(&#39;x&#39;, &#39;y&#39;) on Mesh(&#39;x&#39;: 2, &#39;y&#39;: 4)"}));
  std::vector<std::string> colours = fills(svg);
  std::ranges::sort(colours);
  EXPECT_EQ(std::ranges::unique(colours).size(), 0u);
}

TEST_F(SvgTest, DrawsEveryRankAndPolicy) {
  EXPECT_EQ(tooltips(draw(flat_, {}, {16})), (std::vector<std::string>{"[0:16] CPU 0,1,2,3,4,5,6,7"}));
  EXPECT_EQ(tooltips(draw(flat_, {}, {})), (std::vector<std::string>{"[] CPU 0,1,2,3,4,5,6,7"}));
  EXPECT_EQ(tooltips(draw(flat_, {on({"q"})}, {0})).size(), 8u);
  const std::string uneven = draw(flat_, {on({"q"})}, {7}, Uneven::kLastShort);
  EXPECT_EQ(fills(uneven).back(), "none");
  EXPECT_EQ(labels(uneven).back(), "without elements: CPU 7");
  EXPECT_EQ(labels(draw(mesh_, {on({"y"}), SpecEntry(), on({"x"})}, {4, 4, 4})).back(),
            "rows are dimension 0 and columns dimension 2 of (4, 4, 4)");
  EXPECT_EQ(tooltips(sharding_svg(*SingleDeviceSharding::make(client_->device(DeviceId(5))), {2, 3})),
            (std::vector<std::string>{"[0:2, 0:3] CPU 5"}));
}

TEST_F(SvgTest, DrawsASliceForEachPartOfOtherDimensions) {
  const MeshRef cube = mesh_of(client_, {2, 2, 2}, {"x", "y", "z"});
  const std::string svg = draw(cube, {on({"x"}), SpecEntry(), on({"y"}), on({"z"})}, {4, 3, 6, 10});
  EXPECT_TRUE(is_well_formed(svg));
  EXPECT_EQ(tooltips(svg),
            (std::vector<std::string>{"[0:2, 0:3] dimension 3: 0:5: CPU 0", "[0:2, 3:6] dimension 3: 0:5: CPU 2",
                                      "[2:4, 0:3] dimension 3: 0:5: CPU 4", "[2:4, 3:6] dimension 3: 0:5: CPU 6",
                                      "[0:2, 0:3] dimension 3: 5:10: CPU 1", "[0:2, 3:6] dimension 3: 5:10: CPU 3",
                                      "[2:4, 0:3] dimension 3: 5:10: CPU 5", "[2:4, 3:6] dimension 3: 5:10: CPU 7"}));
  EXPECT_EQ(labels(svg).back(), "rows are dimension 0 and columns dimension 2 of (4, 3, 6, 10)");
  std::vector<std::string> colours = fills(svg);
  std::ranges::sort(colours);
  EXPECT_EQ(std::ranges::unique(colours).size(), 0u);

  // A dimension that ends before the second slice leaves it empty.
  const std::string uneven = draw(cube, {on({"x"}), on({"y"}), on({"z"})}, {2, 2, 1}, Uneven::kLastShort);
  EXPECT_EQ(fills(uneven),
            (std::vector<std::string>{"#accee7", "#de8ca4", "#ace7ac", "#a48cde", "none", "none", "none", "none"}));
  EXPECT_EQ(labels(uneven).back(), "without elements: CPU 1,3,5,7");
}

TEST_F(SvgTest, BoundsTheNumberOfSlices) {
  const ClientRef world = world_of(64);
  const MeshRef mesh = mesh_of(world, {2, 2, 4, 4}, {"a", "b", "c", "d"});
  const std::string svg = draw(mesh, {on({"c"}), on({"d"}), on({"a"}), on({"b"})}, {8, 8, 8, 8});
  EXPECT_EQ(tooltips(svg).size(), 64u);
  EXPECT_EQ(tooltips(svg)[16], "[0:2, 0:2] dimension 2: 0:4, dimension 3: 4:8: CPU 16");
  const MeshRef long_mesh = mesh_of(world, {2, 2, 16}, {"a", "b", "c"});
  const std::string many = draw(long_mesh, {on({"c"}), SpecEntry(), on({"a"}), on({"b"})}, {16, 2, 2, 2});
  EXPECT_EQ(tooltips(many).size(), 64u);
  const MeshRef thin = mesh_of(world_of(4096), {16, 16, 16}, {"a", "b", "c"});
  const std::string cut = draw(thin, {on({"a"}), on({"b"}), on({"c"})}, {16, 16, 16});
  EXPECT_EQ(tooltips(cut).size(), 1024u);
  EXPECT_EQ(labels(cut).back(), "shown: 4 of 16 slices");
}

TEST_F(SvgTest, ArrangesBoxesInFullRows) {
  EXPECT_EQ(SvgDocument::boxes_across(8, 118, 76, 1000), 4);
  EXPECT_EQ(SvgDocument::boxes_across(64, 78, 59, 1000), 8);
  EXPECT_EQ(SvgDocument::boxes_across(64, 78, 59, 400), 4);
  EXPECT_EQ(SvgDocument::boxes_across(7, 10, 10, 1000), 3);
  EXPECT_EQ(SvgDocument::boxes_across(1, 2000, 10, 1000), 1);
}

TEST_F(SvgTest, EscapesAllText) {
  const MeshRef mesh = mesh_of(client_, {8}, {"<script>alert(\"&\")</script>"});
  for (const std::string& svg : {mesh_svg(*mesh), draw(mesh, {on({"<script>alert(\"&\")</script>"})}, {8})}) {
    EXPECT_EQ(svg.find("<script"), std::string::npos);
    EXPECT_NE(svg.find("&lt;script&gt;alert(&quot;&amp;&quot;)&lt;/script&gt;"), std::string::npos);
    EXPECT_TRUE(is_well_formed(svg));
  }
  EXPECT_EQ(svg_escape("a<b>&\"'"), "a&lt;b&gt;&amp;&quot;&#39;");
  EXPECT_EQ(svg_escape(std::string_view("\0\x1b\xff\xed\xa0\x80", 6)),
            "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(svg_escape("größe"), "größe");
}

TEST_F(SvgTest, IsStandAloneAndFollowsTheColourScheme) {
  for (const std::string& svg : {mesh_svg(*mesh_), mesh_svg(*Mesh::make_empty()), draw(mesh_, {}, {4})}) {
    EXPECT_TRUE(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
    EXPECT_TRUE(is_well_formed(svg));
    EXPECT_NE(svg.find("prefers-color-scheme:dark"), std::string::npos);
    EXPECT_NE(svg.find("fill=\"currentColor\""), std::string::npos);
    EXPECT_EQ(svg.find("href"), std::string::npos);
    EXPECT_EQ(found(svg, "http", "", "\""), (std::vector<std::string>{"://www.w3.org/2000/svg"}));
  }
}

TEST_F(SvgTest, BoundsTheSizeOfLargePictures) {
  const MeshRef big = mesh_of(world_of(4096), {64, 64}, {"x", "y"});
  const std::string mesh = mesh_svg(*big);
  EXPECT_EQ(fills(mesh).size(), 1024u);
  EXPECT_EQ(labels(mesh).back(), "shown: 32 of 64 rows and 32 of 64 columns");
  const std::string svg = draw(big, {on({"x"}), on({"y"})}, {4096, 4096});
  EXPECT_EQ(fills(svg).size(), 1024u);
  EXPECT_EQ(labels(svg).back(), "shown: 32 of 64 rows and 32 of 64 columns of parts");
}

}  // namespace
}  // namespace artifex_devices
