// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/conversion/name_pattern.h"

#include <gtest/gtest.h>

#include <string>

#include "artifex_devices/base/error.h"

namespace artifex_devices {
namespace {

std::string renamed(const char* source, const char* target, const char* name) {
  const std::optional<NameMatch> match = NamePattern(source, "test").match(name);
  return match ? NamePattern(target, "test").fill(*match) : "no match";
}

TEST(NamePattern, PlaceholdersMatchPartsOrDigits) {
  EXPECT_EQ(renamed("model.layers.{layer}.up.weight", "layers_{layer}/up", "model.layers.12.up.weight"),
            "layers_12/up");
  EXPECT_EQ(renamed("layers_{layer}/up", "{layer}", "layers_7/up"), "7");
  EXPECT_EQ(renamed("layers_{layer}/up", "{layer}", "layers_x/up"), "no match");
  EXPECT_EQ(renamed("a.{part}.b", "{part}", "a.x_y-z.b"), "x_y-z");
  EXPECT_EQ(renamed("a.{part}.b", "{part}", "a.x.y.b"), "no match");
  EXPECT_EQ(renamed("a.{part}", "{part}", "a."), "no match");
}

TEST(NamePattern, StarsMatchWithinAPartInTheirOrder) {
  EXPECT_EQ(renamed("a.*_proj.*", "b/*/*", "a.q_proj.weight"), "b/q/weight");
  EXPECT_EQ(renamed("a.*", "b.*", "a.x.y"), "no match");
  EXPECT_EQ(renamed("*b*c", "*|*", "abbcbc"), "a|bcb");
  EXPECT_EQ(renamed("w*", "*", "w"), "");
}

TEST(NamePattern, MatchesWholeNames) {
  EXPECT_EQ(renamed("a.b", "x", "a.b.c"), "no match");
  EXPECT_EQ(renamed("b.c", "x", "a.b.c"), "no match");
  EXPECT_EQ(renamed("a.b", "x", "a.b"), "x");
}

TEST(NamePattern, TakesTimeThatGrowsAsTheProductOfPatternAndName) {
  std::string pattern;
  for (int i = 0; i < 200; ++i) pattern += "a*";
  EXPECT_FALSE(NamePattern(pattern + "b", "test").match(std::string(2000, 'a')));
}

TEST(NamePattern, RefusesBracesWithoutNamesAndAmbiguousPatterns) {
  for (const char* text : {"", "a{", "a{}", "a}", "{a b}", "{a}{b}", "**", "*{a}", "{a}.{a}"}) {
    EXPECT_THROW(NamePattern(text, "test"), InvalidArgument) << text;
  }
  EXPECT_NO_THROW(NamePattern(std::string(4096, 'a'), "test"));
  EXPECT_THROW(NamePattern(std::string(4097, 'a'), "test"), InvalidArgument);
}

}  // namespace
}  // namespace artifex_devices
