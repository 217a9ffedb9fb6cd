// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "artifex_devices/base/error.h"
#include "artifex_planner/profile/parts.h"

namespace artifex_devices::planner {
namespace {

using enum ProfileKind;

TEST(ProfileParts, AMessageIsAloneWhereNoComputationRuns) {
  const ProfileParts parts = profile_parts({{kProducts, 0, 4}, {kAllReduce, 3, 6}}, 1);
  EXPECT_EQ(at(parts.busy, kProducts), 4);
  EXPECT_EQ(at(parts.alone, kProducts), 4);
  EXPECT_EQ(at(parts.busy, kAllReduce), 3);
  EXPECT_EQ(at(parts.alone, kAllReduce), 2);
  EXPECT_EQ(parts.idle, 0);
  EXPECT_EQ(parts.seconds, 6);
}

TEST(ProfileParts, OperationsOfOneKindCountOnceAndNestedOnesNotAtAll) {
  const ProfileParts parts = profile_parts(
      {{kSend, 0, 10}, {kSend, 2, 3}, {kElementwise, 5, 5}, {kElementwise, 4, 6}, {kElementwise, 5, 7}}, 1);
  EXPECT_EQ(at(parts.busy, kSend), 10);
  EXPECT_EQ(at(parts.alone, kSend), 7);
  EXPECT_EQ(at(parts.busy, kElementwise), 3);
}

TEST(ProfileParts, EarlierKindsHideLaterOnesAndTheSumIsTheStep) {
  const std::vector<ProfileSpan> spans = {
      {kHost, 1, 9}, {kAllGather, 2, 8}, {kOther, 3, 4}, {kProducts, 6, 7}, {kProducts, 11, 13}};
  const ProfileParts parts = profile_parts(spans, 2);
  EXPECT_EQ(at(parts.alone, kHost), 1);       // 1 to 2 and 8 to 9, over two steps
  EXPECT_EQ(at(parts.alone, kAllGather), 2);  // 2 to 3, 4 to 6 and 7 to 8
  EXPECT_EQ(at(parts.alone, kOther), 0.5);
  EXPECT_EQ(at(parts.alone, kProducts), 1.5);
  EXPECT_EQ(parts.idle, 1);
  EXPECT_EQ(parts.seconds, 6);
  EXPECT_EQ(std::accumulate(parts.alone.begin(), parts.alone.end(), parts.idle), parts.seconds);
}

TEST(ProfileParts, BadSpansAreErrors) {
  EXPECT_THROW(profile_parts({}, 1), InvalidArgument);
  EXPECT_THROW(profile_parts({{kProducts, 0, 1}}, 0), InvalidArgument);
  EXPECT_THROW(profile_parts({{kProducts, 2, 1}}, 1), InvalidArgument);
  EXPECT_THROW(profile_parts({{kProducts, 0, std::nan("")}}, 1), InvalidArgument);
}

TEST(ProfileParts, KindsHaveNames) {
  for (int i = 0; i < kProfileKindCount; ++i) {
    const auto kind = static_cast<ProfileKind>(i);
    EXPECT_EQ(kind_from_name<ProfileKind>(to_string(kind)), kind);
  }
  EXPECT_EQ(kind_from_name<ProfileKind>("gemm"), std::nullopt);
  EXPECT_EQ(profile_kind(MessageKind::kAllGather), kAllGather);
  EXPECT_EQ(profile_kind(MessageKind::kSend), kSend);
}

}  // namespace
}  // namespace artifex_devices::planner
