// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/base/index_domain.h"

#include <gtest/gtest.h>

#include <optional>

namespace artifex_devices {
namespace {

TEST(IndexDomain, HasTheProductOfItsSizesAsVolume) {
  EXPECT_EQ((IndexDomain{{3, 4}, {2, 5}}).volume(), 10);
  EXPECT_EQ((IndexDomain{{}, {}}).volume(), 1);
  EXPECT_EQ((IndexDomain{{0, 0}, {7, 0}}).volume(), 0);
  EXPECT_EQ((IndexDomain{{3, 4}, {2, 5}}).rank(), 2);
}

TEST(IndexDomain, ComparesOriginAndShape) {
  const IndexDomain box{{3}, {2}};
  EXPECT_EQ(box, (IndexDomain{{3}, {2}}));
  EXPECT_NE(box, (IndexDomain{{2}, {2}}));
  EXPECT_NE(box, (IndexDomain{{3}, {3}}));
}

TEST(Intersect, ReturnsTheCommonPart) {
  EXPECT_EQ(intersect({{2}, {4}}, {{4}, {5}}), (IndexDomain{{4}, {2}}));
  EXPECT_EQ(intersect({{0, 0}, {8, 8}}, {{2, 6}, {3, 10}}), (IndexDomain{{2, 6}, {3, 2}}));
}

TEST(Intersect, IsSymmetricAndTheIdentityOnItself) {
  const IndexDomain a{{1, 5, 0}, {9, 3, 4}};
  const IndexDomain b{{4, 2, 2}, {9, 4, 9}};
  EXPECT_EQ(intersect(a, b), intersect(b, a));
  EXPECT_EQ(intersect(a, b), (IndexDomain{{4, 5, 2}, {6, 1, 2}}));
  EXPECT_EQ(intersect(a, a), a);
}

TEST(Intersect, IsEmptyForAdjacentBoxes) {
  EXPECT_EQ(intersect({{0}, {4}}, {{4}, {4}}), std::nullopt);
  EXPECT_EQ(intersect({{0, 0}, {4, 4}}, {{0, 4}, {4, 4}}), std::nullopt);
}

TEST(Intersect, IsEmptyForAnEmptyBox) {
  EXPECT_EQ(intersect({{0}, {4}}, {{2}, {0}}), std::nullopt);
  EXPECT_EQ(intersect({{0, 0}, {4, 0}}, {{0, 0}, {4, 4}}), std::nullopt);
}

TEST(Intersect, ReturnsTheScalarForScalars) { EXPECT_EQ(intersect({{}, {}}, {{}, {}}), (IndexDomain{{}, {}})); }

}  // namespace
}  // namespace artifex_devices
