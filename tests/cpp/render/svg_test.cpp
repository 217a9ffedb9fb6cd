// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/render/svg.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "../sharding/worlds.h"
#include "artifex_devices/render/svg_document.h"
#include "artifex_devices/sharding/named_sharding.h"
#include "artifex_devices/sharding/single_device_sharding.h"

namespace artifex_devices {
namespace {

SpecEntry on(const std::vector<std::string>& axes) { return SpecEntry(names(axes)); }

/// What stands between each `start` (from which on the next `open` is looked for) and the `close` after it.
std::vector<std::string> found(const std::string& text, const std::string& start, const std::string& open,
                               const std::string& close) {
  std::vector<std::string> matches;
  for (size_t at = text.find(start); at != text.npos; at = text.find(start, at)) {
    const size_t begin = text.find(open, at + start.size()) + open.size();
    at = text.find(close, begin);
    matches.push_back(text.substr(begin, at - begin));
  }
  return matches;
}

std::vector<std::string> labels(const std::string& svg) { return found(svg, "<text", ">", "</text>"); }
std::vector<std::string> fills(const std::string& svg) { return found(svg, "<rect", " fill=\"", "\""); }
std::vector<std::string> tooltips(const std::string& svg) { return found(svg, "<g>", "<title>", "</title>"); }

/// Every element is closed, in order; no markup stands inside an attribute.
bool is_well_formed(const std::string& svg) {
  std::vector<std::string> open;
  for (const std::string& tag : found(svg, "<", "", ">")) {
    if (tag.find('<') != tag.npos || std::ranges::count(tag, '"') % 2 != 0) return false;
    const std::string name = tag.substr(0, tag.find(' '));
    if (name[0] == '/') {
      if (open.empty() || "/" + open.back() != name) return false;
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(name);
    }
  }
  return open.empty();
}

class SvgTest : public testing::Test {
 protected:
  std::string draw(const MeshRef& mesh, std::vector<SpecEntry> entries, const Dims& shape,
                   Uneven uneven = Uneven::kError) {
    return sharding_svg(*NamedSharding::make(mesh, PartitionSpec(std::move(entries)), MemoryKind::kDevice, uneven),
                        shape);
  }
  ClientRef client_ = make_world(8, 2);
  MeshRef mesh_ = mesh_of(client_, {2, 4}, {"x", "y"});
  MeshRef flat_ = mesh_of(client_, {8}, {"q"});
};

TEST_F(SvgTest, MeshHasATileADeviceColouredByMemory) {
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

TEST_F(SvgTest, ShardingHasATileAPartWithDevicesAndAxes) {
  const std::string svg = draw(mesh_, {on({"x"}), on({"y"})}, {16, 8});
  EXPECT_EQ(tooltips(svg), (std::vector<std::string>{"[0:8, 0:2] CPU 0", "[0:8, 2:4] CPU 1", "[0:8, 4:6] CPU 2",
                                                     "[0:8, 6:8] CPU 3", "[8:16, 0:2] CPU 4", "[8:16, 2:4] CPU 5",
                                                     "[8:16, 4:6] CPU 6", "[8:16, 6:8] CPU 7"}));
  const std::vector<std::string> texts = labels(svg);
  EXPECT_EQ(std::vector<std::string>(texts.end() - 3, texts.end()),
            (std::vector<std::string>{"(16, 8) as P(&#39;x&#39;, &#39;y&#39;) on Mesh(&#39;x&#39;: 2, &#39;y&#39;: 4)",
                                      "dimension 1: 8, cut by y", "dimension 0: 16, cut by x"}));
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
  EXPECT_EQ(tooltips(sharding_svg(*SingleDeviceSharding::make(client_->device(5)), {2, 3})),
            (std::vector<std::string>{"[0:2, 0:3] CPU 5"}));
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

TEST_F(SvgTest, StandsAloneInLightAndDark) {
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
  const MeshRef big = mesh_of(make_world(4096), {64, 64}, {"x", "y"});
  const std::string mesh = mesh_svg(*big);
  EXPECT_EQ(fills(mesh).size(), 1024u);
  EXPECT_EQ(labels(mesh).back(), "shown: 32 of 64 rows and 32 of 64 columns");
  const std::string svg = draw(big, {on({"x"}), on({"y"})}, {4096, 4096});
  EXPECT_EQ(fills(svg).size(), 1024u);
  EXPECT_EQ(labels(svg).back(), "shown: 32 of 64 rows and 32 of 64 columns of parts");
}

}  // namespace
}  // namespace artifex_devices
