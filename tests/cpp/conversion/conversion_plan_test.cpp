// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/conversion/conversion_plan.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "artifex_devices/base/error.h"

namespace artifex_devices {
namespace {

Rule rule(RuleKind kind, std::vector<std::string> source, std::vector<std::string> target = {}) {
  Rule made;
  made.kind = kind;
  made.source = std::move(source);
  made.target = std::move(target);
  return made;
}

Rule transposed(const char* pattern, Dims axes) {
  Rule made = rule(RuleKind::kTranspose, {pattern});
  made.axes = std::move(axes);
  return made;
}

Rule stacked(const char* source, const char* target, int64_t position) {
  Rule made = rule(RuleKind::kStack, {source}, {target});
  made.placeholder = "layer";
  made.axis = position;
  return made;
}

ConversionPlan plan(std::vector<NamedType> sources, std::vector<Rule> rules) {
  return plan_conversion({"test", std::move(sources), std::move(rules), {}, {}, {}, {}});
}

std::string problem_of(const PlanArguments& arguments) {
  try {
    plan_conversion(arguments);
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "no error";
}

TEST(ConversionPlan, ARenamedArrayIsOneRegion) {
  const ConversionPlan made = plan({{"a.0.w", {2, 3}}}, {rule(RuleKind::kRename, {"a.{n}.w"}, {"b/{n}"})});
  ASSERT_EQ(made.targets.size(), 1);
  EXPECT_EQ(made.targets[0].type.name, "b/0");
  EXPECT_EQ(made.targets[0].regions, std::vector<Region>{whole_region(0, {2, 3}, DType::kFloat32)});
  EXPECT_EQ(made.bytes_read, 24);
  EXPECT_EQ(made.bytes_written, 24);
}

TEST(ConversionPlan, StackedAndTransposedLayersAreOneRegionEach) {
  const ConversionPlan made =
      plan({{"a.0", {2, 3}}, {"a.1", {2, 3}}}, {transposed("a.*", {1, 0}), stacked("a.{layer}", "a", 1)});
  ASSERT_EQ(made.targets.size(), 1);
  EXPECT_EQ(made.targets[0].type.shape, (Dims{3, 2, 2}));
  const std::vector<RegionLoop> loops = {{0, 1, 3, 1}, {2, 1, 2, 3}};
  EXPECT_EQ(made.targets[0].regions, (std::vector<Region>{{{0, 0, 0}, loops, 0}, {{0, 1, 0}, loops, 1}}));
}

TEST(ConversionPlan, TheTenthLayerComesAfterTheNinth) {
  std::vector<NamedType> sources;
  for (int i = 10; i >= 0; --i) sources.push_back({"a." + std::to_string(i), {1}});
  const ConversionPlan made = plan(sources, {stacked("a.{layer}", "a", 0)});
  ASSERT_EQ(made.targets[0].regions.size(), 11);
  EXPECT_EQ(made.sources[static_cast<size_t>(made.targets[0].regions[2].source)].name, "a.2");
  EXPECT_EQ(made.sources[static_cast<size_t>(made.targets[0].regions[10].source)].name, "a.10");
}

TEST(ConversionPlan, UnstackingAStackReadsWholeLayersAgain) {
  const ConversionPlan made = plan({{"a.0", {2, 3}}, {"a.1", {2, 3}}},
                                   {stacked("a.{layer}", "a", -1), inverse_of(stacked("a.{layer}", "a", -1))});
  ASSERT_EQ(made.targets.size(), 2);
  EXPECT_EQ(made.targets[1].regions, std::vector<Region>{whole_region(1, {2, 3}, DType::kFloat32)});
}

TEST(ConversionPlan, AllGroupsOfASplitAreOneRegion) {
  Rule split = rule(RuleKind::kSplit, {"qkv"}, {"q", "k"});
  split.sizes = {4, 2};
  split.groups = 2;
  const ConversionPlan made = plan({{"qkv", {6}}}, {split});
  EXPECT_EQ(made.targets[0].type.name, "k");
  EXPECT_EQ(made.targets[0].regions, (std::vector<Region>{{{0}, {{0, 1, 2, 3}}, 0, 2}}));
  EXPECT_EQ(made.targets[1].regions, (std::vector<Region>{{{0}, {{0, 2, 2, 3}, {0, 1, 2, 1}}, 0, 0}}));
}

TEST(ConversionPlan, ACastAndAConstantKeepTheirOrder) {
  Rule constant = rule(RuleKind::kConstant, {}, {"zero"});
  constant.shape = {2};
  constant.dtype = DType::kFloat32;
  constant.value = std::string("\0\0\x80\x3f", 4);
  constant.value_text = "1.0";
  Rule cast = rule(RuleKind::kCast, {"*"});
  cast.dtype = DType::kBFloat16;
  const ConversionPlan made = plan({}, {constant, cast});
  EXPECT_EQ(made.targets[0].type.dtype, DType::kBFloat16);
  EXPECT_EQ(
      made.targets[0].regions,
      (std::vector<Region>{
          {{0}, {{0, 1, 2, 0}}, Region::kConstant, 0, {{DType::kBFloat16, 1}}, constant.value, DType::kFloat32}}));
  EXPECT_EQ(made.bytes_read, 0);
  EXPECT_EQ(made.bytes_written, 4);
}

TEST(ConversionPlan, FloatsAreCastAndOtherNumbersAreNot) {
  const ConversionPlan made =
      plan_conversion({"test", {{"f", {1}}, {"i", {1}, DType::kInt32}}, {}, DType::kFloat16, {}, {}, {}});
  EXPECT_EQ(made.targets[0].type.dtype, DType::kFloat16);
  EXPECT_EQ(made.targets[0].regions[0].changes, (std::vector<ValueChange>{{DType::kFloat16, 1}}));
  EXPECT_EQ(made.targets[1].type.dtype, DType::kInt32);
}

TEST(ConversionPlan, EmptyAndScalarArraysPassThrough) {
  const ConversionPlan made = plan({{"empty", {0, 3}}, {"scalar", {}}}, {});
  EXPECT_TRUE(made.targets[0].regions.empty());
  EXPECT_EQ(made.targets[1].regions.size(), 1);
  EXPECT_TRUE(made.unread.empty());
}

TEST(ConversionPlan, NamesBothRulesOfOneSourceAndOfOneTarget) {
  const Rule to_b = rule(RuleKind::kRename, {"a"}, {"b"});
  const Rule to_c = rule(RuleKind::kRename, {"a"}, {"c"});
  EXPECT_EQ(problem_of({"test", {{"a", {1}}}, {to_b, to_c}, {}, {}, {}, {}}),
            "test: rule 2, rules.rename('a', 'c'): matches no array, because rule 1, rules.rename('a', 'b'), has taken "
            "'a'; expected one rule for each array; remove one of both");
  const Rule also_b = rule(RuleKind::kRename, {"x"}, {"b"});
  EXPECT_EQ(
      problem_of({"test", {{"a", {1}}, {"x", {1}}}, {to_b, also_b}, {}, {}, {}, {}}),
      "test: rule 2, rules.rename('x', 'b'): creates 'b', which rule 1, rules.rename('a', 'b'), creates; expected "
      "one array for each name; correct one of both");
}

TEST(ConversionPlan, AStackWithAMissingLayerIsRefused) {
  EXPECT_EQ(problem_of({"test", {{"a.0", {1}}, {"a.2", {1}}}, {stacked("a.{layer}", "a", 0)}, {}, {}, {}, {}}),
            "test: rule 1, rules.stack('a.{layer}', 'a', axis='layer'): 'a.1' is missing; expected numbers from 0 on "
            "without gaps, got 2 after 1 arrays; correct the source");
}

TEST(ConversionPlan, AnAxisThatAnArrayDoesNotHaveIsRefused) {
  Rule divides = rule(RuleKind::kSplit, {"a"}, {"b", "c"});
  divides.sizes = {1, 1};
  divides.axis = 5;
  EXPECT_EQ(problem_of({"test", {{"a", {2}}}, {divides}, {}, {}, {}, {}}),
            "test: rule 1, rules.split('a', ['b', 'c'], axis=5, sizes=(1, 1)): the axis is 5; expected an axis of 'a', "
            "which has shape (2,); correct it");
}

TEST(ConversionPlan, ARuleForAnEmptySourceIsRefused) {
  EXPECT_EQ(problem_of({"test", {}, {rule(RuleKind::kRename, {"a"}, {"b"})}, {}, {}, {}, {}}),
            "test: rule 1, rules.rename('a', 'b'): matches no array, because there are none; expected one; correct the "
            "pattern or remove the rule");
}

TEST(ConversionPlan, ListsWhatIsLeftOverOnBothSides) {
  const std::vector<NamedType> like = {{"a", {1}}, {"b", {1}}};
  EXPECT_EQ(
      problem_of({"test", {{"a", {1}}, {"x", {1}}}, {}, {}, like, {}, {}}),
      "test: 1 of like has no source: 'b'; 1 array is not in like: 'x'; expected the arrays of like; add rules or "
      "allow_missing=['b'], add rules.drop('x') or allow_extra=['x']");
  const ConversionPlan made = plan_conversion({"test", {{"a", {1}}, {"x", {1}}}, {}, {}, like, {"b"}, {"*"}});
  EXPECT_EQ(made.missing, std::vector<std::string>{"b"});
  EXPECT_EQ(made.extra, std::vector<std::string>{"x"});
  EXPECT_EQ(made.unread, std::vector<std::string>{"x"});
}

TEST(ConversionPlan, AnotherShapeOrDtypeThanInLikeIsRefused) {
  EXPECT_EQ(
      problem_of({"test", {{"a", {1}}}, {}, {}, std::vector<NamedType>{{"a", {2}}}, {}, {}}),
      "test: 'a' has shape (2,) in like and (1,) after the rules; expected the arrays of like; correct the rules");
  EXPECT_EQ(problem_of({"test", {{"a", {1}}}, {}, {}, std::vector<NamedType>{{"a", {1}, DType::kInt8}}, {}, {}}),
            "test: 'a' is int8 in like and float32 after the rules; expected the arrays of like; add rules.cast('a', "
            "'int8')");
}

TEST(ConversionPlan, ItsTextIsATable) {
  const ConversionPlan made =
      plan({{"a.0", {2, 3}}, {"a.1", {2, 3}}, {"norm", {4}}, {"old", {1}}},
           {transposed("a.*", {1, 0}), stacked("a.{layer}", "layers/a", 0), rule(RuleKind::kDrop, {"old"})});
  EXPECT_EQ(to_string(made, 2, 0),
            "target    dtype and shape   source    changes\n"
            "layers/a  float32(2, 3, 2)  a.0, a.1  transposed, 2 boxes\n"
            "norm      float32(4,)       norm\n"
            "target arrays without a source: none\n"
            "arrays that the target lacks: none\n"
            "source arrays that are not read: old\n"
            "reads 64 bytes, writes 64 bytes; needs at most 192 bytes of memory for the data (2 workers)");
}

}  // namespace
}  // namespace artifex_devices
