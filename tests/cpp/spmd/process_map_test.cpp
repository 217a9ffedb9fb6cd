// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/spmd/process_map.h"

#include <gtest/gtest.h>

#include <vector>

namespace artifex_devices {
namespace {

using Numbers = std::vector<int64_t>;
using Groups = std::vector<Numbers>;

/// Two processes with two devices each, over axes of 2 and 2; process 0 runs the participants of the first row.
ProcessMap rows_of(int64_t process) { return {process, {2, 2}, {{0}, {0}, {1}, {1}}}; }

TEST(AxisGroups, AreRowMajorOverTheListedAxes) {
  EXPECT_EQ(axis_groups({2, 2}, {1}), (Groups{{0, 1}, {2, 3}}));
  EXPECT_EQ(axis_groups({2, 2}, {0}), (Groups{{0, 2}, {1, 3}}));
  EXPECT_EQ(axis_groups({2, 2}, {1, 0}), (Groups{{0, 2, 1, 3}}));
  EXPECT_EQ(axis_groups({2}, {}), (Groups{{0}, {1}}));
  EXPECT_EQ(axis_groups({}, {}), (Groups{{0}}));
}

TEST(ProcessMap, NumbersTheParticipantsOfThisProcess) {
  const ProcessMap map = rows_of(1);
  EXPECT_EQ(map.processes(), (Numbers{0, 1}));
  EXPECT_EQ(map.here(), (Numbers{2, 3}));
  EXPECT_EQ(map.slot(3), 1);
  EXPECT_EQ(map.slot(0), -1);
}

TEST(ProcessMap, KeepsGroupsWithinAProcessLocal) {
  EXPECT_FALSE(rows_of(0).groups_across(axis_groups({2, 2}, {1})).has_value());
}

TEST(ProcessMap, GivesGroupsAcrossProcessesTheirOwnersAndSlots) {
  const auto across = rows_of(1).groups_across(axis_groups({2, 2}, {0}));
  ASSERT_TRUE(across.has_value());
  EXPECT_EQ(across->processes, (Numbers{0, 1}));
  EXPECT_EQ(across->slots, (Numbers{0, 1}));
  EXPECT_TRUE(across->is_even);
  EXPECT_TRUE(across->in_runs);
  ASSERT_EQ(across->groups.size(), 2u);
  const CrossProcessGroup& second = across->groups[1];
  EXPECT_EQ(second.members, (Numbers{1, 3}));
  EXPECT_EQ(second.owners, (Numbers{0, 1}));
  EXPECT_EQ(second.here, (std::vector<std::pair<int64_t, int64_t>>{{1, 1}}));
  EXPECT_EQ(second.processes, (Numbers{0, 1}));
  EXPECT_EQ(second.held, (Groups{{0}, {1}}));
}

TEST(ProcessMap, RecognizesMembersThatAreNotInRuns) {
  const ProcessMap map(0, {4}, {{0}, {1}, {0}, {1}});
  EXPECT_FALSE(map.groups_across({{0, 1, 2, 3}})->in_runs);
}

TEST(ProcessMap, JoinsTheProcessesOfGroupsThatShareOne) {
  const ProcessMap map(0, {4}, {{0}, {1}, {1}, {2}});
  const auto across = map.groups_across({{0, 1}, {2, 3}});
  ASSERT_TRUE(across.has_value());
  EXPECT_EQ(across->processes, (Numbers{0, 1, 2}));
  EXPECT_EQ(across->groups.size(), 1u);
  EXPECT_FALSE(across->is_even);
}

TEST(ProcessMap, MakesTheFirstProcessTheOwnerOfSharedParticipants) {
  const ProcessMap map(1, {1}, {{0, 1}});
  const auto across = map.groups_across({{0}});
  ASSERT_TRUE(across.has_value());
  EXPECT_EQ(across->groups[0].owners, (Numbers{0}));
  EXPECT_EQ(across->groups[0].held, (Groups{{0}, {0}}));
}

TEST(ProcessMap, RequiresEqualMixturesForSameParts) {
  EXPECT_FALSE(rows_of(0).same_parts({}).has_value());
  EXPECT_FALSE(rows_of(0).same_parts({1}).has_value());  // the copies are within each process
  EXPECT_EQ(rows_of(0).same_parts({0})->processes, (Numbers{0, 1}));
  const ProcessMap mixed(0, {2, 3}, {{0}, {0}, {1}, {0}, {1}, {1}});
  EXPECT_FALSE(mixed.same_parts({0}).has_value());
}

TEST(ProcessMap, ListsAllProcessesFirstInMeetingSets) {
  EXPECT_EQ(rows_of(0).meeting_sets(), (Groups{{0, 1}}));
  const ProcessMap quads(0, {2, 2}, {{0}, {1}, {2}, {3}});
  EXPECT_EQ(quads.meeting_sets(), (Groups{{0, 1, 2, 3}, {0, 2}, {0, 1}}));
}

}  // namespace
}  // namespace artifex_devices
