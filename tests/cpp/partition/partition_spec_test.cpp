// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/partition/partition_spec.h"

#include <gtest/gtest.h>

#include "artifex_devices/base/error.h"
#include "axes.h"

namespace artifex_devices {
namespace {

const AxisName data("data");
const AxisName model("model");

template <class Expected>
std::string message_of(const PartitionSpec& spec, const AbstractMesh& mesh) {
  try {
    spec.check(mesh, "NamedSharding");
  } catch (const Expected& error) {
    return error.what();
  }
  return "no error";
}

TEST(PartitionSpec, PrintsAsJax) {
  EXPECT_EQ(PartitionSpec().to_string(), "P()");
  EXPECT_EQ(PartitionSpec({on({x})}).to_string(), "P('x',)");
  EXPECT_EQ(PartitionSpec({SpecEntry()}).to_string(), "P(None,)");
  EXPECT_EQ(PartitionSpec({on({x, y})}).to_string(), "P(('x', 'y'),)");
  EXPECT_EQ(PartitionSpec({on({x}), SpecEntry(), on({y}), SpecEntry::unconstrained()}).to_string(),
            "P('x', None, 'y', UNCONSTRAINED)");
  EXPECT_EQ(PartitionSpec({on({y, x}), SpecEntry()}).to_string(), "P(('y', 'x'), None)");
  EXPECT_EQ(PartitionSpec({on({AxisName::foreign("('a', 1)")})}).to_string(), "P(('a', 1),)");
}

TEST(PartitionSpec, ComparesAsJax) {
  EXPECT_NE(PartitionSpec({on({x})}), PartitionSpec({on({x}), SpecEntry()}));
  EXPECT_NE(PartitionSpec({on({x})}).hash(), PartitionSpec({on({x}), SpecEntry()}).hash());
  EXPECT_EQ(PartitionSpec({on({})}), PartitionSpec({SpecEntry()}));
  EXPECT_EQ(PartitionSpec({on({x})}), PartitionSpec({SpecEntry(x)}));
  EXPECT_EQ(PartitionSpec({on({x})}).hash(), PartitionSpec({SpecEntry(x)}).hash());
  EXPECT_NE(PartitionSpec({on({x, y})}), PartitionSpec({on({y, x})}));
  EXPECT_NE(PartitionSpec({SpecEntry::unconstrained()}), PartitionSpec({SpecEntry()}));
}

TEST(PartitionSpec, AcceptsAxesOfTheMesh) {
  const AbstractMesh mesh({x, y}, {2, 4});
  EXPECT_EQ(message_of<Error>(PartitionSpec({on({y, x}), SpecEntry(), SpecEntry::unconstrained()}), mesh), "no error");
  EXPECT_EQ(message_of<Error>(PartitionSpec(), AbstractMesh()), "no error");
}

TEST(PartitionSpec, ListsAllUnknownAxesAndSuggestsNearNames) {
  const AbstractMesh mesh({data, model}, {2, 4});
  EXPECT_EQ(message_of<InvalidArgument>(
                PartitionSpec({on({AxisName("dta")}), on({AxisName("MODEL"), AxisName("stage")})}), mesh),
            "NamedSharding: P('dta', ('MODEL', 'stage')) names axes that are not in the mesh: 'dta' (did you "
            "mean 'data'?), 'MODEL' (did you mean 'model'?), 'stage'; expected axes of Mesh('data': 2, 'model': 4); "
            "correct the names or make a mesh with these axes");
}

TEST(PartitionSpec, SuggestsNothingForDissimilarNames) {
  EXPECT_PRED_FORMAT2(testing::IsSubstring, "not in the mesh: 'z'; expected",
                      message_of<InvalidArgument>(PartitionSpec({on({AxisName("z")})}), AbstractMesh({x, y}, {2, 4})));
}

TEST(PartitionSpec, NamesBothDimensionsOfARepeatedAxis) {
  const AbstractMesh mesh({x, y}, {2, 4});
  EXPECT_EQ(message_of<DuplicateSpecError>(PartitionSpec({on({x}), SpecEntry(), on({y, x})}), mesh),
            "NamedSharding: mesh axis 'x' is used in dimensions 0 and 2 of P('x', None, ('y', 'x')); expected each "
            "mesh axis in at most one dimension; keep each axis in one place, or use None");
  EXPECT_PRED_FORMAT2(testing::IsSubstring, "mesh axis 'x' is used 2 times in dimension 0 of P(('x', 'x'),)",
                      message_of<DuplicateSpecError>(PartitionSpec({on({x, x})}), mesh));
}

TEST(PartitionSpec, ReportsRepeatedAxesBeforeUnknownOnes) {
  const AbstractMesh mesh({x, y}, {2, 4});
  EXPECT_PRED_FORMAT2(
      testing::IsSubstring,
      "mesh axis 'x' is used in dimensions 1 and 2, mesh axis 'y' is used in dimensions 1 and 2 of",
      message_of<DuplicateSpecError>(PartitionSpec({on({AxisName("q")}), on({x, y}), on({y, x})}), mesh));
}

}  // namespace
}  // namespace artifex_devices
