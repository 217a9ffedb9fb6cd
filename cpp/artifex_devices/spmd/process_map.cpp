// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/spmd/process_map.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace artifex_devices {
namespace {

using Numbers = std::vector<int64_t>;

int64_t product(const Numbers& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
}

bool contains(const std::vector<ProcessIndex>& sorted, ProcessIndex process) {
  return std::ranges::binary_search(sorted, process);
}

/// Whether equal processes follow each other: {1, 1, 0} but not {1, 0, 1}.
bool is_in_runs(std::vector<ProcessIndex> processes) {
  processes.erase(std::ranges::unique(processes).begin(), processes.end());
  return std::set<ProcessIndex>(processes.begin(), processes.end()).size() == processes.size();
}

}  // namespace

std::vector<Members> axis_groups(const Numbers& sizes, const Numbers& axes) {
  Numbers strides(sizes.size(), 1);
  for (size_t d = sizes.size(); d-- > 1;) strides[d - 1] = strides[d] * sizes[d];
  const auto size = [&](int64_t axis) { return sizes[axis]; };
  const auto stride = [&](int64_t axis) { return strides[axis]; };
  Numbers offsets{0};
  for (const int64_t axis : axes) {
    Numbers longer;
    for (const int64_t offset : offsets) {
      for (int64_t i = 0; i < size(axis); ++i) longer.push_back(offset + i * stride(axis));
    }
    offsets = std::move(longer);
  }
  std::vector<Members> groups;
  for (int64_t first = 0; first < product(sizes); ++first) {
    if (std::ranges::any_of(axes, [&](int64_t axis) { return first / stride(axis) % size(axis) != 0; })) continue;
    Members& group = groups.emplace_back();
    for (const int64_t offset : offsets) group.push_back(ParticipantId(first + offset));
  }
  return groups;
}

ProcessMap::ProcessMap(ProcessIndex process, Numbers sizes, IdVector<ParticipantId, std::vector<ProcessIndex>> holders)
    : process_(process), sizes_(std::move(sizes)), holders_(std::move(holders)) {
  std::set<ProcessIndex> all;
  for (const ParticipantId participant : holders_.ids()) {
    all.insert(holders_[participant].begin(), holders_[participant].end());
    if (contains(holders_[participant], process_)) here_.push_back(participant);
  }
  processes_.assign(all.begin(), all.end());
}

SlotId ProcessMap::slot(ParticipantId participant) const noexcept {
  const auto found = std::ranges::lower_bound(here_, participant);
  return found != here_.end() && *found == participant ? SlotId(found - here_.begin()) : SlotId();
}

std::vector<ProcessIndex> ProcessMap::processes_of(const Members& members) const {
  std::set<ProcessIndex> found;
  for (const ParticipantId member : members) {
    const std::vector<ProcessIndex>& holders = holders_[member];
    found.insert(holders.begin(), holders.end());
  }
  return {found.begin(), found.end()};
}

std::optional<CrossProcessGroups> ProcessMap::groups_across(const std::vector<Members>& groups) const {
  std::vector<std::vector<ProcessIndex>> reach;
  for (const Members& group : groups) reach.push_back(processes_of(group));
  // Linked processes run one operation together: a group links its processes, and so do groups that share a process.
  std::set<ProcessIndex> linked;
  for (const auto& processes : reach) {
    if (processes.size() > 1 && contains(processes, process_)) linked.insert(processes.begin(), processes.end());
  }
  if (linked.empty()) return std::nullopt;
  const auto is_linked = [&](const std::vector<ProcessIndex>& processes) {
    return processes.size() > 1 &&
           std::ranges::any_of(processes, [&](ProcessIndex each) { return linked.contains(each); });
  };
  for (size_t before = 0; before != linked.size();) {
    before = linked.size();
    for (const auto& processes : reach) {
      if (is_linked(processes)) linked.insert(processes.begin(), processes.end());
    }
  }
  CrossProcessGroups result;
  result.processes.assign(linked.begin(), linked.end());
  result.is_even = result.in_runs = true;
  for (size_t g = 0; g < groups.size(); ++g) {
    const Members& members = groups[g];
    IdVector<MemberIndex, ProcessIndex> owners;
    for (const ParticipantId member : members) owners.push_back(holders_[member].front());
    result.in_runs = result.in_runs && is_in_runs(owners.values());
    if (is_linked(reach[g])) result.is_even = result.is_even && reach[g] == result.processes;
    if (reach[g].size() < 2 || !contains(reach[g], process_)) continue;
    CrossProcessGroup group{
        members, std::move(owners), {}, reach[g], std::vector<std::vector<MemberIndex>>(reach[g].size())};
    for (const MemberIndex i : members.ids()) {
      for (size_t p = 0; p < reach[g].size(); ++p) {
        if (contains(holders_[members[i]], reach[g][p])) group.held[p].push_back(i);
      }
      if (const SlotId own = slot(members[i]); !own.is_none()) {
        group.here.emplace_back(i, own);
        result.slots.push_back(own);
      }
    }
    result.groups.push_back(std::move(group));
  }
  std::ranges::sort(result.slots);
  return result;
}

std::optional<CrossProcessGroups> ProcessMap::same_parts(const Numbers& unnamed) const {
  if (unnamed.empty()) return std::nullopt;
  const std::vector<Members> groups = axis_groups(sizes_, unnamed);
  std::optional<CrossProcessGroups> result = groups_across(groups);
  if (!result) return std::nullopt;
  std::set<Numbers> mixtures;  // of numbers of groups
  for (const ProcessIndex process : result->processes) {
    Numbers held;
    for (size_t g = 0; g < groups.size(); ++g) {
      if (contains(processes_of(groups[g]), process)) held.push_back(static_cast<int64_t>(g));
    }
    mixtures.insert(std::move(held));
  }
  return mixtures.size() == 1 ? std::move(result) : std::nullopt;
}

std::vector<std::vector<ProcessIndex>> ProcessMap::meeting_sets() const {
  std::vector<Numbers> axes;  // every set of axes, smaller ones first
  for (uint64_t mask = 1; mask < uint64_t{1} << sizes_.size(); ++mask) {
    Numbers& chosen = axes.emplace_back();
    for (size_t d = 0; d < sizes_.size(); ++d) {
      if ((mask >> d & 1) != 0) chosen.push_back(static_cast<int64_t>(d));
    }
  }
  std::ranges::sort(axes, {}, [](const Numbers& chosen) { return std::make_pair(chosen.size(), chosen); });
  std::vector<std::vector<ProcessIndex>> found{processes_};
  for (const Numbers& chosen : axes) {
    const std::optional<CrossProcessGroups> across = groups_across(axis_groups(sizes_, chosen));
    if (across && std::ranges::find(found, across->processes) == found.end()) found.push_back(across->processes);
  }
  return found;
}

}  // namespace artifex_devices
