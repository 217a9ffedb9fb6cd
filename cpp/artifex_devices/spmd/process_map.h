// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace artifex_devices {

/// The groups of participants that differ along `axes` only. Participants are numbered row-major over `sizes`; the
/// members of a group are row-major over the axes in the order in which they are listed.
///
///     axis_groups({2, 2}, {1});     // {0, 1}, {2, 3}
///     axis_groups({2, 2}, {1, 0});  // {0, 2, 1, 3}
std::vector<std::vector<int64_t>> axis_groups(const std::vector<int64_t>& sizes, const std::vector<int64_t>& axes);

/// One group of a collective with members in several processes, this one among them.
struct CrossProcessGroup {
  std::vector<int64_t> members;                   // participants, in the order of the collective
  std::vector<int64_t> owners;                    // of each member: the process whose block counts
  std::vector<std::pair<int64_t, int64_t>> here;  // members of this process: index in the group, slot
  std::vector<int64_t> processes;                 // all that run a member, ascending
  std::vector<std::vector<int64_t>> held;         // of each of them: the indexes of the members that it runs
};

/// The processes that one kind of collective brings together with this one.
struct CrossProcessGroups {
  std::vector<int64_t> processes;         // ascending; linked by groups, so that all of them meet at once
  std::vector<CrossProcessGroup> groups;  // those with members in this process
  std::vector<int64_t> slots;             // all that this process runs of these groups, ascending
  bool is_even = false;                   // each of these processes runs a member of each group that reaches them
  bool in_runs = false;  // the members of each process follow each other in every group, in all processes
};

/// Which processes run the participants of a mesh. A slot is the number of a participant among those that this process
/// runs. Immutable.
///
/// Example: two processes with two devices each and one axis of four: in process 1 here() is {2, 3}, and slot(3) is 1.
class ProcessMap {
 public:
  /// `holders` has, for each participant, the processes that run it, ascending; the block of the first one counts.
  ProcessMap(int64_t process, std::vector<int64_t> sizes, std::vector<std::vector<int64_t>> holders);

  const std::vector<int64_t>& processes() const noexcept { return processes_; }
  const std::vector<int64_t>& here() const noexcept { return here_; }
  int64_t slot(int64_t participant) const noexcept;  // -1 for a participant of other processes

  /// What of these groups spans processes; nothing where all groups of this process are within it.
  std::optional<CrossProcessGroups> groups_across(const std::vector<std::vector<int64_t>>& groups) const;
  /// The processes that hold the same parts of a value sharded over all axes but `unnamed`. Nothing where no other
  /// process holds any of them, or where the processes hold different mixtures of parts.
  std::optional<CrossProcessGroups> same_parts(const std::vector<int64_t>& unnamed) const;
  /// Every set of processes that collectives over axes of this mesh bring together with this one; all processes first.
  std::vector<std::vector<int64_t>> meeting_sets() const;

 private:
  std::vector<int64_t> processes_of(const std::vector<int64_t>& participants) const;

  int64_t process_;
  std::vector<int64_t> sizes_;
  std::vector<std::vector<int64_t>> holders_;
  std::vector<int64_t> processes_;
  std::vector<int64_t> here_;
};

}  // namespace artifex_devices
