// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/spmd/process_map.h"

#include <gtest/gtest.h>

#include <vector>

namespace artifex_devices {
namespace {

using Numbers = std::vector<int64_t>;
using Groups = std::vector<Numbers>;

ProcessMap map_of(int64_t process, const Numbers& sizes, const Groups& holders) {
  IdVector<ParticipantId, std::vector<ProcessIndex>> processes;
  for (const Numbers& each : holders) processes.push_back({each.begin(), each.end()});
  return {ProcessIndex(process), sizes, std::move(processes)};
}

std::vector<Members> members_of(const Groups& groups) {
  std::vector<Members> members;
  for (const Numbers& each : groups) members.emplace_back(std::vector<ParticipantId>(each.begin(), each.end()));
  return members;
}

template <class Sets>
Groups all_numbers(const Sets& sets) {
  Groups result;
  for (const auto& each : sets) {
    Numbers& found = result.emplace_back();
    for (const auto id : each) found.push_back(id.number());
  }
  return result;
}

/// Two processes with two devices each, over axes of 2 and 2; process 0 runs the participants of the first row.
ProcessMap rows_of(int64_t process) { return map_of(process, {2, 2}, {{0}, {0}, {1}, {1}}); }

TEST(AxisGroups, AreRowMajorOverTheListedAxes) {
  EXPECT_EQ(all_numbers(axis_groups({2, 2}, {1})), (Groups{{0, 1}, {2, 3}}));
  EXPECT_EQ(all_numbers(axis_groups({2, 2}, {0})), (Groups{{0, 2}, {1, 3}}));
  EXPECT_EQ(all_numbers(axis_groups({2, 2}, {1, 0})), (Groups{{0, 2, 1, 3}}));
  EXPECT_EQ(all_numbers(axis_groups({2}, {})), (Groups{{0}, {1}}));
  EXPECT_EQ(all_numbers(axis_groups({}, {})), (Groups{{0}}));
}

TEST(ProcessMap, NumbersTheParticipantsOfThisProcess) {
  const ProcessMap map = rows_of(1);
  EXPECT_EQ(numbers(map.processes()), (Numbers{0, 1}));
  EXPECT_EQ(numbers(map.here().values()), (Numbers{2, 3}));
  EXPECT_EQ(map.slot(ParticipantId(3)), SlotId(1));
  EXPECT_EQ(map.slot(ParticipantId(0)), SlotId());
}

TEST(ProcessMap, KeepsGroupsWithinAProcessLocal) {
  EXPECT_FALSE(rows_of(0).groups_across(axis_groups({2, 2}, {1})).has_value());
}

TEST(ProcessMap, GivesGroupsAcrossProcessesTheirOwnersAndSlots) {
  const auto across = rows_of(1).groups_across(axis_groups({2, 2}, {0}));
  ASSERT_TRUE(across.has_value());
  EXPECT_EQ(numbers(across->processes), (Numbers{0, 1}));
  EXPECT_EQ(numbers(across->slots), (Numbers{0, 1}));
  EXPECT_TRUE(across->is_even);
  EXPECT_TRUE(across->in_runs);
  ASSERT_EQ(across->groups.size(), 2u);
  const CrossProcessGroup& second = across->groups[1];
  EXPECT_EQ(numbers(second.members.values()), (Numbers{1, 3}));
  EXPECT_EQ(numbers(second.owners.values()), (Numbers{0, 1}));
  EXPECT_EQ(second.here, (std::vector{std::pair(MemberIndex(1), SlotId(1))}));
  EXPECT_EQ(numbers(second.processes), (Numbers{0, 1}));
  EXPECT_EQ(all_numbers(second.held), (Groups{{0}, {1}}));
}

TEST(ProcessMap, RecognizesMembersThatAreNotInRuns) {
  const ProcessMap map = map_of(0, {4}, {{0}, {1}, {0}, {1}});
  EXPECT_FALSE(map.groups_across(members_of({{0, 1, 2, 3}}))->in_runs);
}

TEST(ProcessMap, JoinsTheProcessesOfGroupsThatShareOne) {
  const ProcessMap map = map_of(0, {4}, {{0}, {1}, {1}, {2}});
  const auto across = map.groups_across(members_of({{0, 1}, {2, 3}}));
  ASSERT_TRUE(across.has_value());
  EXPECT_EQ(numbers(across->processes), (Numbers{0, 1, 2}));
  EXPECT_EQ(across->groups.size(), 1u);
  EXPECT_FALSE(across->is_even);
}

TEST(ProcessMap, MakesTheFirstProcessTheOwnerOfSharedParticipants) {
  const ProcessMap map = map_of(1, {1}, {{0, 1}});
  const auto across = map.groups_across(members_of({{0}}));
  ASSERT_TRUE(across.has_value());
  EXPECT_EQ(numbers(across->groups[0].owners.values()), (Numbers{0}));
  EXPECT_EQ(all_numbers(across->groups[0].held), (Groups{{0}, {0}}));
}

TEST(ProcessMap, RequiresEqualMixturesForSameParts) {
  EXPECT_FALSE(rows_of(0).same_parts({}).has_value());
  EXPECT_FALSE(rows_of(0).same_parts({1}).has_value());  // the copies are within each process
  EXPECT_EQ(numbers(rows_of(0).same_parts({0})->processes), (Numbers{0, 1}));
  const ProcessMap mixed = map_of(0, {2, 3}, {{0}, {0}, {1}, {0}, {1}, {1}});
  EXPECT_FALSE(mixed.same_parts({0}).has_value());
}

TEST(ProcessMap, ListsAllProcessesFirstInMeetingSets) {
  EXPECT_EQ(all_numbers(rows_of(0).meeting_sets()), (Groups{{0, 1}}));
  const ProcessMap quads = map_of(0, {2, 2}, {{0}, {1}, {2}, {3}});
  EXPECT_EQ(all_numbers(quads.meeting_sets()), (Groups{{0, 1, 2, 3}, {0, 2}, {0, 1}}));
}

}  // namespace
}  // namespace artifex_devices
