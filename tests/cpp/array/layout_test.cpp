// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/array/layout.h"

#include <gtest/gtest.h>

#include <random>

#include "artifex_devices/base/error.h"

namespace artifex_devices {
namespace {

TEST(Layout, RoundTripsThroughText) {
  for (const char* text : {"{}", "{0}", "{1,0}", "{0,1}", "{2,0,1}"}) {
    EXPECT_EQ(Layout::parse(text).to_string(), text);
    EXPECT_EQ(Layout::parse(text), Layout::parse(text));
    EXPECT_EQ(Layout::parse(text).hash(), Layout::parse(text).hash());
  }
  EXPECT_NE(Layout::parse("{1,0}"), Layout::parse("{0,1}"));
  EXPECT_EQ(Layout::parse(" { 1,\t0 }\n"), Layout::parse("{1,0}"));
}

TEST(Layout, RecognizesOnlyRowMajorOrders) {
  EXPECT_TRUE(Layout::row_major(3).is_row_major());
  EXPECT_TRUE(Layout::row_major(0).is_row_major());
  EXPECT_EQ(Layout::row_major(3).to_string(), "{2,1,0}");
  EXPECT_FALSE(Layout::parse("{0,1}").is_row_major());
  EXPECT_EQ(Layout({2, 0, 1}).major_to_minor(), (Dims{1, 0, 2}));
}

TEST(Layout, ComputesTheStridesOfAnOrder) {
  EXPECT_EQ(strides_of_order({2, 3}, {0, 1}, 4), (Dims{4, 8}));
  EXPECT_EQ(strides_of_order({2, 3}, {1, 0}, 4), (Dims{12, 4}));
  EXPECT_EQ(strides_of_order({}, {}, 4), Dims{});
}

TEST(Layout, ParsesOrRefusesAnyText) {
  std::mt19937 random(7);  // NOLINT: the same each time
  const std::string_view letters = "{}(),:*TLESC0123456789 -";
  int64_t read = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text = "{3,1,0,2}";
    for (int change = 0; change < 1 + i % 3; ++change) {
      const size_t at = random() % text.size();
      if (random() % 2 == 0) {
        text[at] = letters[random() % letters.size()];
      } else {
        text.erase(at, 1);
      }
    }
    try {
      const Layout layout = Layout::parse(text);
      EXPECT_EQ(Layout::parse(layout.to_string()), layout) << text;
      ++read;
    } catch (const InvalidArgument& error) {
      EXPECT_TRUE(std::string_view(error.what()).starts_with("Layout")) << error.what();
    }
  }
  EXPECT_GT(read, 100);
}

}  // namespace
}  // namespace artifex_devices
