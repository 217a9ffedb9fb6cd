// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "artifex_devices/base/id.h"

namespace artifex_devices {

/// Participants in the order of a collective.
using Members = IdVector<MemberIndex, ParticipantId>;

/// The groups of participants that differ along `axes` only. Participants are numbered row-major over `sizes`; the
/// members of a group are row-major over the axes in the order in which they are listed.
///
///     axis_groups({2, 2}, {1});     // {0, 1}, {2, 3}
///     axis_groups({2, 2}, {1, 0});  // {0, 2, 1, 3}
std::vector<Members> axis_groups(const std::vector<int64_t>& sizes, const std::vector<int64_t>& axes);

/// One group of a collective with members in several processes, including this process.
struct CrossProcessGroup {
  Members members;
  IdVector<MemberIndex, ProcessIndex> owners;        // process of each member whose block counts
  std::vector<std::pair<MemberIndex, SlotId>> here;  // members in this process
  std::vector<ProcessIndex> processes;               // processes that run a member, ascending
  std::vector<std::vector<MemberIndex>> held;        // for each process: the members that it runs
};

/// The processes that run one kind of collective together with this process.
struct CrossProcessGroups {
  std::vector<ProcessIndex> processes;    // ascending; linked by groups, so they run the operation together
  std::vector<CrossProcessGroup> groups;  // groups with members in this process
  std::vector<SlotId> slots;              // slots of all members of these groups in this process, ascending
  bool is_even = false;                   // each process runs a member of each group that spans these processes
  bool in_runs = false;  // the members of each process are consecutive in every group, in all processes
};

/// Assignment of the participants of a mesh to processes. A slot is the index of a participant among the participants
/// of this process. Immutable.
///
/// Example: two processes with two devices each and one axis of four: in process 1 here() is {2, 3}, and slot(3) is 1.
class ProcessMap {
 public:
  /// `holders` has, for each participant, the processes that run it, ascending; the block of the first one counts.
  ProcessMap(ProcessIndex process, std::vector<int64_t> sizes,
             IdVector<ParticipantId, std::vector<ProcessIndex>> holders);

  const std::vector<ProcessIndex>& processes() const noexcept { return processes_; }
  const IdVector<SlotId, ParticipantId>& here() const noexcept { return here_; }
  SlotId slot(ParticipantId participant) const noexcept;  // none for a participant of other processes

  /// Returns the groups that span several processes, or nothing if all groups of this process are within it.
  std::optional<CrossProcessGroups> groups_across(const std::vector<Members>& groups) const;
  /// Returns the processes that hold the same parts of a value that is sharded over all axes except `unnamed`. Returns
  /// nothing if no other process holds any of these parts, or if the processes hold partly different parts.
  std::optional<CrossProcessGroups> same_parts(const std::vector<int64_t>& unnamed) const;
  /// Returns every set of processes, including this process, that run collectives over axes of this mesh together. The
  /// set of all processes is first.
  std::vector<std::vector<ProcessIndex>> meeting_sets() const;

 private:
  std::vector<ProcessIndex> processes_of(const Members& members) const;

  ProcessIndex process_;
  std::vector<int64_t> sizes_;
  IdVector<ParticipantId, std::vector<ProcessIndex>> holders_;
  std::vector<ProcessIndex> processes_;
  IdVector<SlotId, ParticipantId> here_;
};

}  // namespace artifex_devices
